// The inputs text: `x=bf16[4096,4096] p.w=f32[8,8] ids=i32[64]{0..4095} n=8 key=prng`, as given to --inputs and in the
// comment `# kernelwright: …`. Names are paths into arguments, so that pytrees can be described leaf by leaf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::kernels {

// One step of a path: `.w` and `["w"]` below the first name; `[0]` is an index.
struct PathStep {
  enum class Kind { kName, kAttribute, kKey, kIndex };
  Kind kind = Kind::kName;
  std::string name;   // kName, kAttribute, kKey
  int64_t index = 0;  // kIndex
  bool operator==(const PathStep&) const = default;
};

struct InputSpec {
  enum class Kind { kTensor, kStatic, kPrngKey };
  std::vector<PathStep> path;  // first step: the argument's name
  Kind kind = Kind::kTensor;
  std::string dtype;                                 // kTensor: full name, "bfloat16", "float8_e4m3fn"
  std::vector<int64_t> dims;                         // kTensor
  std::optional<std::pair<int64_t, int64_t>> range;  // kTensor of integers: values lie in first…second, both included
  std::string static_json;                           // kStatic: JSON of the value; a tuple is an array
  bool operator==(const InputSpec&) const = default;

  std::string PathText() const;  // "p.w", "p[\"w\"]", "args[0]"
};

// Where in the text a parse failed; columns in bytes from 0.
struct InputsError {
  uint32_t offset = 0;
  std::string message;  // what is wrong
  std::string remedy;   // what is allowed
};

// Items are separated by spaces or commas outside brackets. Never throws.
using InputsResult = std::variant<std::vector<InputSpec>, InputsError>;
InputsResult ParseInputsText(std::string_view text);

// The same as a Status of kind kUsage; `where` names the text ("--inputs", "k.py:12") and the column is appended, and
// the remedy tells what is allowed.
Expected<std::vector<InputSpec>> ParseInputs(std::string_view text, std::string_view where);

// The text again, in short dtype names; ParseInputs(FormatInputs(x)) == x.
std::string FormatInputs(const std::vector<InputSpec>& inputs);
std::string FormatInput(const InputSpec& input);

// "bf16" or "bfloat16" -> "bfloat16"; nothing for what is not supported.
std::optional<std::string> CanonicalDtype(std::string_view name);
// "bfloat16" -> "bf16"; the name itself when it is not known.
std::string ShortDtype(std::string_view name);
// Bits of one element of a canonical or short dtype name (bool: 8); 0 when unknown.
int DtypeBits(std::string_view name);

}  // namespace kernelwright::kernels
