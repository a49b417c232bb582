// Checks JSON that a model wrote against a schema, with messages that a model can act on: the path, what is wrong, what
// is allowed, what was probably meant. Covers the keywords that our own schemas use.
#pragma once

#include <string>
#include <vector>

#include "daemon/base/json.h"
#include "daemon/base/status.h"

namespace kernelwright::models {

// Everything that is wrong, in the order of the value; at most `most` entries. Empty when the value fits.
// Keywords: type (a name or a list), properties, required, additionalProperties (false or absent), items, enum, const,
// minimum, maximum, minLength, maxLength, minItems, maxItems, anyOf; description and title are for the reader.
std::vector<std::string> CheckAgainstSchema(const Json& schema, const Json& value, size_t most = 8);

// Whether a schema uses only those keywords and is well formed; names the place that is not. For tests of our schemas
// and for those that users bring.
Status CheckSchema(const Json& schema);

// A value of an answer that should be JSON: the text as it is, or what a fence encloses, checked against the schema.
// The error lists what is wrong, for the next question.
Expected<Json> ReadStructured(std::string_view text, const Json& schema);

}  // namespace kernelwright::models
