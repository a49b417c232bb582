// Making what a model is told fit: the most useful first, whole lines, and always within the limit. All limits are in
// bytes, which bound tokens from above, so what fits here fits the model. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/models/message.h"
#include "daemon/prompts/prompt.h"

namespace kernelwright::prompts {

// At most `most_bytes` of a text, whole lines where possible, with a note of how many are left out.
std::string FitText(std::string_view text, size_t most_bytes, Keep keep);

struct BuiltPrompt {
  std::string system;
  std::string task;
  std::vector<std::string> cut;  // variables that were shortened or left out
};

// Renders both templates within `most_bytes` together. Variables give way in the order of their importance, the least
// first, each down to nothing before the next is touched. kLimit when the templates and what must be kept whole are too
// large by themselves.
Expected<BuiltPrompt> BuildPrompt(const Prompt& prompt, const std::map<std::string, std::string>& values,
                                  size_t most_bytes);

// Bytes of a conversation as far as a model counts it.
size_t SizeOf(const models::Message& message);
size_t SizeOf(const std::vector<models::Message>& messages);

// A conversation that is at most `most_bytes`: the first message (the task) and the newest ones stay; of those between,
// results of tools shrink to a line first, then whole turns give way to a list of what was done. Calls and their
// results stay together, so that every provider accepts it. When even the first and the last turn are too large they
// are cut too: there is always an answer, also for a limit of a few hundred bytes.
std::vector<models::Message> Compact(const std::vector<models::Message>& messages, size_t most_bytes);

}  // namespace kernelwright::prompts
