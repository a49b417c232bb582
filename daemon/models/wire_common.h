// What the wire formats share. Private to this folder.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/models/wire.h"

namespace kernelwright::models {

// Reads of JSON that foreign servers made: what is missing or of another type reads as null, "" or 0.
const Json& Member(const Json& value, std::string_view key);
std::string StringAt(const Json& value, std::string_view key);
int64_t IntAt(const Json& value, std::string_view key);

// Fills `arguments` or `malformed` of a call from the text that the model wrote; no text at all means no arguments.
void SetArguments(ToolCall* call, std::string raw);

// The error of an answer with an HTTP error status: cause by status, what the server asked to wait, its words. The wire
// formats refine the cause. `message` is the server's; empty when it sent none.
CallError ErrorOfStatus(const Endpoint& endpoint, const HttpHead& head, std::string message);
CallError ErrorOfStatus(const Endpoint& endpoint, int status, std::string message);
// A new cause for the same error, with the kind and remedy that belong to it.
void SetCause(CallError* error, Cause cause);
// Whether a server's words for a bad request mean that the prompt is too long.
bool SaysTooLong(std::string_view message);

// "Retry-After: 12", "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT", "retry-after-ms: 350": milliseconds from `now_ms`
// (since 1970). Never negative; empty for anything else.
std::optional<int64_t> ParseRetryAfter(const HttpHead& head, int64_t now_ms);

// An answer that is not what this kind of server sends.
CallError ProtocolError(const Endpoint& endpoint, const std::string& what);
// One event's data as JSON; an answer cut in the middle of an event and a broken proxy look like this, so asking again
// may help.
CallResult<Json> ParseEventData(const Endpoint& endpoint, std::string_view data);

// The system prompt, with the schema written into it where the server cannot be given it.
std::string SystemText(const Endpoint& endpoint, const Request& request, bool schema_in_prompt);

// Joins a path to the base URL.
std::string Url(const Endpoint& endpoint, std::string_view path);

// Text of a schema without the keywords that servers with constrained decoding refuse (ranges, lengths, patterns).
Json WithoutRanges(const Json& schema);
// Whether every object in it lists all its properties as required and allows no others: what strict modes ask for.
bool IsStrict(const Json& schema);

}  // namespace kernelwright::models
