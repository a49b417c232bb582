// Values are looked for when a copy asks for them, and kept as they lie in memory.
#include "daemon/cost/known_operands.h"

#include <algorithm>

namespace kernelwright::cost {
namespace {

// "int8" -> "s8", "bool" -> "pred"; empty for other types.
std::string HloType(std::string_view dtype) {
  if (dtype == "bool") return "pred";
  if (dtype.starts_with("uint")) return "u" + std::string(dtype.substr(4));
  if (dtype.starts_with("int")) return "s" + std::string(dtype.substr(3));
  return {};
}

// Whether a call may change the operand: an output that shares its memory.
bool IsAliased(const compiler::HloInstruction& call, size_t index) {
  const std::string& attributes = call.attributes;
  const size_t at = attributes.find("output_to_operand_aliasing");
  if (at == std::string::npos) return false;
  // "{{}: (0, {}), {1}: (2, {})}": the number behind each parenthesis is an operand.
  const std::string operand = "(" + std::to_string(index) + ",";
  return attributes.find(operand, at) != std::string::npos;
}

bool NamesCall(std::string_view kernel, std::string_view call_site) {
  if (kernel == call_site) return true;
  if (kernel.empty() || !call_site.starts_with(kernel)) return false;
  const std::string_view rest = call_site.substr(kernel.size());
  return rest.size() > 1 && rest[0] == '.' && rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
}

}  // namespace

ProgramContents::ProgramContents(const compiler::HloModule& module, const std::vector<KnownOperand>& known)
    : module_(module),
      known_(known),
      evaluator_(module, [this](size_t index, const ArrayType& type) { return Given({}, index, type); }) {}

std::optional<IntArray> ProgramContents::Given(std::string_view call_site, size_t index, const ArrayType& type) const {
  for (const KnownOperand& known : known_) {
    if (known.operand < 0 || static_cast<size_t>(known.operand) != index || !NamesCall(known.kernel, call_site))
      continue;
    if (known.dims != type.dims || HloType(known.dtype) != type.dtype) continue;
    return FromBytes(type, known.data);
  }
  return std::nullopt;
}

std::optional<IntArray> ProgramContents::Value(std::string_view call_site, size_t index) const {
  if (call_site.empty()) {
    for (const compiler::HloComputation& computation : module_.computations) {
      if (!computation.is_entry) continue;
      for (const compiler::HloInstruction& instruction : computation.instructions) {
        if (instruction.opcode != "parameter" || instruction.literal != std::to_string(index)) continue;
        const auto type = ParseArrayType(instruction.type);
        return type ? Given({}, index, *type) : std::nullopt;
      }
    }
    return std::nullopt;
  }
  const compiler::HloInstruction* call = module_.Find(call_site);
  if (call == nullptr || index >= call->operands.size() || IsAliased(*call, index)) return std::nullopt;
  if (const compiler::HloInstruction* operand = module_.Find(call->operands[index])) {
    const auto type = ParseArrayType(operand->type);
    if (!type) return std::nullopt;
    if (auto given = Given(call_site, index, *type)) return given;
  }
  return evaluator_.Operand(call_site, index);
}

const std::string* ProgramContents::Find(std::string_view call_site, size_t index) const {
  const auto key = std::pair{std::string(call_site), index};
  auto it = laid_out_.find(key);
  if (it == laid_out_.end()) {
    const auto value = Value(call_site, index);
    it = laid_out_.emplace(key, value ? LayOut(*value) : std::nullopt).first;
  }
  return it->second ? &*it->second : nullptr;
}

}  // namespace kernelwright::cost
