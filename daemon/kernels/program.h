// The program graph: what a front end (jax tracing now, torch.export later) says a function computes.
// Plain values; the proto form is proto/kernelwright/v1/ir.proto and the marshaller in daemon/worker converts.
// Graphs nest: loops, conditionals, calls and kernels hold their bodies as regions.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace kernelwright {

// A range in a user's file, 1-based lines and columns, end exclusive; zeros when unknown. Innermost frame first.
struct SourceSpan {
  std::string file;
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;
  std::string function;
};

// Type of a value. dtype uses NumPy/ml_dtypes names ("bfloat16", "float32", "int32", "bool", "key<fry>").
struct TensorType {
  std::string dtype;
  std::vector<int64_t> dims;
  std::string memory_space;  // "" for a value, else "vmem", "smem", "any", "hbm", "semaphore", …
  bool is_ref = false;       // a mutable reference, as kernels take
  bool weak_type = false;
};

struct GraphValue {
  uint32_t id = 0;  // unique within one Program
  TensorType type;
  std::string name;
};

// An operand: a value by id, or a scalar literal.
struct Operand {
  std::optional<uint32_t> value;
  TensorType literal_type;
  std::variant<std::monostate, int64_t, double, bool> literal;
};

using Attribute = std::variant<std::monostate, int64_t, double, bool, std::string, std::vector<int64_t>>;

struct Graph;
struct PallasCall;

struct Operation {
  std::string name;  // primitive: "dot_general", "pallas_call", "scan", "get", "swap", …
  std::vector<Operand> inputs;
  std::vector<GraphValue> outputs;
  std::map<std::string, Attribute> attributes;
  std::vector<Graph> regions;
  std::vector<std::string> region_names;  // "jaxpr", "cond_jaxpr", "branches[0]", …; same length as regions
  std::vector<SourceSpan> spans;          // innermost frame first
  std::vector<std::string> effects;       // "read(0)", "write(1)", "callback", …
  std::vector<PallasCall> pallas;         // one entry for a pallas_call, else empty
};

// A constant captured by the program. Small ones carry their bytes (little endian, C order).
struct GraphConstant {
  uint32_t value = 0;
  TensorType type;
  uint64_t size_bytes = 0;
  std::string sha256;
  std::string data;  // empty above 64 KiB
};

struct Graph {
  std::string name;
  std::vector<GraphValue> inputs;
  std::vector<GraphConstant> constants;
  std::vector<Operation> operations;
  std::vector<Operand> outputs;
};

struct BlockDim {
  enum class Kind { kBlocked, kSqueezed, kElement, kBoundedSlice };
  Kind kind = Kind::kBlocked;
  int64_t size = 1;  // 1 for a squeezed dimension
};

// How one operand of a kernel is cut into blocks.
struct BlockMapping {
  std::string origin;  // "x_ref", "args[0]", "outputs[1]": as the compiler's texts name it
  bool is_output = false;
  TensorType array;  // the whole operand
  std::vector<BlockDim> block;
  std::string memory_space;  // "vmem" unless the spec says otherwise
  int buffers = 2;           // 1 for pl.Buffered(1)
  Graph index_map;           // inputs: grid ids (int32), then scalar-prefetch refs; outputs: one block id per dimension
  bool has_index_map = true;  // false for operands left in place (memory space ANY, SMEM without blocks)
};

struct PallasCall {
  std::string name;
  std::vector<int64_t> grid;  // empty: no grid; -1 for a dynamic bound
  int num_scalar_prefetch = 0;
  std::vector<BlockMapping> blocks;  // inputs then outputs
  std::vector<TensorType> scratch;
  std::vector<std::pair<int, int>> aliases;      // operand -> output
  std::vector<std::string> dimension_semantics;  // empty when not given
  std::optional<int64_t> vmem_limit_bytes;
  Graph kernel;                   // refs in order: prefetch, inputs, outputs, scratch
  std::vector<SourceSpan> spans;  // where pallas_call was called, innermost frame first
  SourceSpan kernel_span;         // first line of the kernel function
};

struct Program {
  std::string front_end;                        // "jax" or "torch.export"
  std::map<std::string, std::string> versions;  // jax, jaxlib, libtpu, python
  Graph main;
};

// All kernels of a program in program order, nested regions included. Pointers live as long as `program`.
std::vector<const PallasCall*> FindPallasCalls(const Program& program);
std::vector<const PallasCall*> FindPallasCalls(const Graph& graph);

}  // namespace kernelwright
