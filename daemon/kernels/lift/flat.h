// A traced program as one flat list: calls are replaced by their bodies, scalars that are known while tracing are
// computed, and every value is a node or a number. What cannot be seen through (loops, arrays captured from outside) is
// a refusal with its place.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "daemon/kernels/program.h"
#include "daemon/kernels/proposal.h"

namespace kernelwright::kernels::lift {

// What an operation takes: the result of a node, or a number that stands for an array of any shape filled with it.
struct Arg {
  int node = -1;  // index into FlatProgram::nodes; -1: a number
  double number = 0;
  bool is_bool = false;
  bool is_integer = false;
  bool operator==(const Arg&) const = default;
  bool is_number() const { return node < 0; }
};

struct Node {
  std::string op;  // name of the primitive; "input" for an input
  std::vector<Arg> args;
  const Operation* operation = nullptr;  // attributes; null for an input; lives as long as the program
  std::string name;                      // of an input: "x", "p.w"
  TensorType type;
  std::vector<SourceSpan> spans;  // innermost first
  int call = 0;                   // which inlined call it came from; 0: the function itself
};

struct FlatProgram {
  std::vector<Node> nodes;  // in program order, inputs first
  size_t inputs = 0;
  std::vector<Arg> outputs;
  bool has_custom_vjp = false;  // a gradient of its own, which knows reverse mode only
};

// Why a place is not lifted.
struct Obstacle {
  std::string reason;
  std::vector<SourceSpan> spans;
};

using FlatResult = std::variant<FlatProgram, Obstacle>;
FlatResult Flatten(const Program& program);

// Attributes of a node by name; empty or the default when it has none.
std::vector<int64_t> Integers(const Node& node, const std::string& name);
std::string Text(const Node& node, const std::string& name);
std::optional<int64_t> Integer(const Node& node, const std::string& name);

// The innermost frame of `spans` that is in one of the user's files; an empty range when there is none.
LineRange PlaceOf(const std::vector<SourceSpan>& spans, const std::vector<std::unique_ptr<SourceFile>>& files);

}  // namespace kernelwright::kernels::lift
