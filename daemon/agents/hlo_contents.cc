// Reads the text of an optimised HLO module line by line: counts kernels and host calls, and adds up the products that
// XLA computes itself. Instructions look like `%name = type[dims]{layout} opcode(%operands), attributes`.
#include <charconv>
#include <map>
#include <optional>

#include "daemon/agents/program_gate.h"

namespace kernelwright::agents {
namespace {

using Dims = std::vector<int64_t>;

struct Instruction {
  std::string_view name;
  Dims dims;
  std::string_view opcode;
  std::vector<std::string_view> operands;
  std::string_view attributes;
};

std::string_view Strip(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// "1,2,3" -> {1, 2, 3}; bounded dynamic sizes ("<=8") count as their bound.
Dims ParseDims(std::string_view text) {
  Dims dims;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view part = Strip(text.substr(0, comma));
    if (part.starts_with("<=")) part.remove_prefix(2);
    int64_t value = 0;
    std::from_chars(part.data(), part.data() + part.size(), value);
    dims.push_back(value);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return dims;
}

// Position just after the parenthesis that closes the one at `open`.
size_t AfterParenthesis(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return text.size();
}

std::optional<Instruction> ParseInstruction(std::string_view line) {
  line = Strip(line);
  if (line.starts_with("ROOT ")) line.remove_prefix(5);
  const size_t equals = line.find(" = ");
  if (!line.starts_with('%') || equals == std::string_view::npos) return std::nullopt;
  Instruction instruction;
  instruction.name = line.substr(0, equals);
  std::string_view rest = line.substr(equals + 3);
  // The type: a tuple in parentheses, or one word with its layout; tiles in the layout hold parentheses too.
  size_t type_end = 0;
  if (rest.starts_with('(')) {
    type_end = AfterParenthesis(rest, 0);
  } else {
    const size_t open = rest.find('[');
    const size_t close = rest.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
    instruction.dims = ParseDims(rest.substr(open + 1, close - open - 1));
    type_end = rest.find(' ', close);
  }
  if (type_end == std::string_view::npos) return std::nullopt;
  rest = Strip(rest.substr(type_end));
  const size_t open = rest.find('(');
  if (open == std::string_view::npos) return std::nullopt;
  instruction.opcode = rest.substr(0, open);
  const size_t after = AfterParenthesis(rest, open);
  std::string_view operands = rest.substr(open + 1, after - open - 2);
  while (!operands.empty()) {
    const size_t comma = operands.find(',');
    const std::string_view operand = Strip(operands.substr(0, comma));
    const size_t percent = operand.find('%');
    if (percent != std::string_view::npos) instruction.operands.push_back(operand.substr(percent));
    if (comma == std::string_view::npos) break;
    operands.remove_prefix(comma + 1);
  }
  instruction.attributes = rest.substr(after);
  return instruction;
}

double Product(const Dims& dims) {
  double product = 1;
  for (int64_t dim : dims) product *= static_cast<double>(dim);
  return product;
}

std::string_view AttributeText(std::string_view attributes, std::string_view name, char end) {
  const size_t at = attributes.find(name);
  if (at == std::string_view::npos) return {};
  const size_t begin = at + name.size();
  return attributes.substr(begin, attributes.find(end, begin) - begin);
}

double DotFlops(const Instruction& dot, const Dims& left) {
  double contracted = 1;
  for (int64_t axis : ParseDims(AttributeText(dot.attributes, "lhs_contracting_dims={", '}'))) {
    if (axis >= 0 && axis < static_cast<int64_t>(left.size())) contracted *= static_cast<double>(left[axis]);
  }
  return 2 * Product(dot.dims) * contracted;
}

// Each output element sums over all of the kernel except its output-feature dimension, marked `o` in `bf_io->bf`.
double ConvolutionFlops(const Instruction& convolution, const Dims& kernel) {
  std::string_view labels = AttributeText(convolution.attributes, "dim_labels=", '-');
  labels = labels.substr(labels.find('_') == std::string_view::npos ? labels.size() : labels.find('_') + 1);
  const size_t output_feature = labels.find('o');
  double summed = Product(kernel);
  if (output_feature < kernel.size() && kernel[output_feature] > 0) {
    summed /= static_cast<double>(kernel[output_feature]);
  }
  return 2 * Product(convolution.dims) * summed;
}

}  // namespace

HloContents ReadHlo(std::string_view text) {
  HloContents contents;
  std::map<std::string_view, Dims> shapes;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const auto instruction = ParseInstruction(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!instruction) continue;
    const std::string_view opcode = instruction->opcode;
    auto operand_dims = [&](size_t index) {
      if (index >= instruction->operands.size()) return Dims{};
      const auto found = shapes.find(instruction->operands[index]);
      return found == shapes.end() ? Dims{} : found->second;
    };
    if (opcode == "custom-call") {
      const std::string_view target = AttributeText(instruction->attributes, "custom_call_target=\"", '"');
      if (target == "tpu_custom_call") ++contents.kernels;
      if (target.find("callback") != std::string_view::npos || target.find("Callback") != std::string_view::npos) {
        ++contents.host_callbacks;
      }
    } else if (opcode == "infeed" || opcode == "outfeed" || opcode == "send" || opcode == "recv") {
      ++contents.host_callbacks;
    } else if (opcode == "dot") {
      contents.outside_flops += DotFlops(*instruction, operand_dims(0));
    } else if (opcode == "convolution") {
      contents.outside_flops += ConvolutionFlops(*instruction, operand_dims(1));
    }
    shapes[instruction->name] = instruction->dims;
  }
  return contents;
}

}  // namespace kernelwright::agents
