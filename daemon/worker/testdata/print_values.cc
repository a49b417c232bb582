// Prints every field of the values that cross the worker's pipe. Overloads of Put recurse; a field is `name=value;`.
#include <map>
#include <sstream>
#include <type_traits>
#include <utility>

#include "daemon/worker/testdata/random_values.h"

namespace kernelwright::worker {
namespace {

class Printer {
 public:
  std::string text() const { return out_.str(); }

  template <typename... Fields>
  void All(const char* name, const Fields&... fields) {
    out_ << name << '{';
    (Put(fields), ...);
    out_ << '}';
  }

  void Put(const std::string& value) { out_ << value.size() << ':' << value << ';'; }
  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Put(T value) {
    if constexpr (std::is_enum_v<T>) {
      out_ << static_cast<int>(value) << ';';
    } else {
      out_ << std::hexfloat << +value << ';';
    }
  }
  void Put(std::monostate) { out_ << "none;"; }
  void Put(std::chrono::milliseconds value) { Put(value.count()); }
  template <typename T>
  void Put(const std::vector<T>& values) {
    out_ << '[' << values.size() << ' ';
    for (const T& value : values) Put(value);
    out_ << ']';
  }
  template <typename T>
  void Put(const std::optional<T>& value) {
    out_ << (value ? "some " : "nothing;");
    if (value) Put(*value);
  }
  template <typename A, typename B>
  void Put(const std::pair<A, B>& pair) {
    All("", pair.first, pair.second);
  }
  template <typename T>
  void Put(const std::map<std::string, T>& values) {
    out_ << '[';
    for (const auto& [name, value] : values) All("", name, value);
    out_ << ']';
  }
  template <typename... T>
  void Put(const std::variant<T...>& value) {
    out_ << '#' << value.index() << ' ';
    std::visit([this](const auto& held) { this->Put(held); }, value);
  }

  void Put(const SourceSpan& v) { All("span", v.file, v.line, v.column, v.end_line, v.end_column, v.function); }
  void Put(const TensorType& v) { All("type", v.dtype, v.dims, v.memory_space, v.is_ref, v.weak_type); }
  void Put(const GraphValue& v) { All("value", v.id, v.type, v.name); }
  void Put(const Operand& v) { All("operand", v.value, v.literal_type, v.literal); }
  void Put(const GraphConstant& v) { All("constant", v.value, v.type, v.size_bytes, v.sha256, v.data); }
  void Put(const Graph& v) { All("graph", v.name, v.inputs, v.constants, v.operations, v.outputs); }
  void Put(const BlockDim& v) { All("dim", v.kind, v.size); }
  void Put(const Operation& v) {
    All("op", v.name, v.inputs, v.outputs, v.attributes, v.regions, v.region_names, v.spans, v.effects, v.pallas);
  }
  void Put(const BlockMapping& v) {
    All("block", v.origin, v.is_output, v.array, v.block, v.memory_space, v.buffers, v.index_map, v.has_index_map);
  }
  void Put(const PallasCall& v) {
    All("call", v.name, v.grid, v.num_scalar_prefetch, v.blocks, v.scratch, v.aliases, v.dimension_semantics,
        v.vmem_limit_bytes, v.kernel, v.spans, v.kernel_span);
  }
  void Put(const Program& v) { All("program", v.front_end, v.versions, v.main); }

  void Put(const kernels::InputSpec& v) { Put(kernels::FormatInput(v)); }
  void Put(const agents::FileText& v) { All("file", v.path, v.text); }
  void Put(const agents::Source& v) { All("source", v.file, v.function, v.files); }
  void Put(const agents::Limits& v) { All("limits", v.deadline, v.memory_bytes, v.file_bytes); }
  void Put(const CodeError& v) { All("error", v.stage, v.type, v.message, v.cause, v.frames, v.traceback); }
  void Put(const agents::Artefact& v) { All("artefact", v.chip, v.exported, v.sha256, v.error); }
  void Put(const agents::ClosureFile& v) { All("closure", v.path, v.sha256, v.is_user_file, v.functions); }
  void Put(const agents::DumpFile& v) { All("dump", v.name, v.gzip); }
  void Put(const agents::CheckShape& v) { All("shape", v.name, v.inputs); }
  void Put(const agents::Tolerance& v) { All("tolerance", v.reference_factor, v.floor_relative); }
  void Put(const agents::GateResult& v) { All("gate", v.gate, v.status, v.reason); }
  void Put(const agents::ChipProbe& v) { All("chip", v.chip, v.compiles, v.detail, v.milliseconds); }
  void Put(const agents::Comparison& v) {
    All("comparison", v.shape, v.distribution, v.seed, v.output, v.candidate_error, v.reference_error, v.limit, v.pass,
        v.detail);
  }
  void Common(const agents::JobReport& v) { All("job", v.outcome, v.detail, v.role, v.milliseconds); }

 private:
  std::ostringstream out_;
};

}  // namespace

std::string Print(const Program& program) {
  Printer printer;
  printer.Put(program);
  return printer.text();
}

std::string Print(const agents::TraceRequest& v) {
  Printer printer;
  printer.All("trace", v.source, v.inputs, v.chips, v.want_program, v.want_artefacts, v.limits);
  return printer.text();
}

std::string Print(const agents::CompileRequest& v) {
  Printer printer;
  printer.All("compile", v.artefact, v.want_dumps, v.limits);
  return printer.text();
}

std::string Print(const agents::JudgeRequest& v) {
  Printer printer;
  printer.All("judge", v.candidate, v.reference, v.shapes, v.seeds, v.tolerance, v.claims_kernel, v.chip,
              v.reference_only, v.only_gates, v.limits);
  return printer.text();
}

std::string Print(const agents::TraceReport& v) {
  Printer printer;
  printer.Common(v);
  printer.All("trace", v.error, v.program, v.artefacts, v.inputs, v.inputs_origin, v.closure, v.calls_seen, v.outputs,
              v.output_tree, v.versions);
  return printer.text();
}

std::string Print(const agents::CompileReport& v) {
  Printer printer;
  printer.Common(v);
  printer.All("compile", v.error, v.dumps, v.flops, v.bytes_accessed, v.argument_bytes, v.output_bytes,
              v.temporary_bytes, v.hlo_gzip, v.versions, v.compile_milliseconds);
  return printer.text();
}

std::string Print(const agents::JudgeReport& v) {
  Printer printer;
  printer.Common(v);
  printer.All("judge", v.gates, v.comparisons, v.candidate_error, v.reference_error, v.inputs_sha256);
  return printer.text();
}

std::string Print(const agents::ProbeReport& v) {
  Printer printer;
  printer.Common(v);
  printer.All("probe", v.chips);
  return printer.text();
}

}  // namespace kernelwright::worker
