// Draws the values; print_values.cc prints them.
#include "daemon/worker/testdata/random_values.h"

#include <array>

namespace kernelwright::worker {

std::string RandomValues::Text() {
  constexpr std::array kWords = {"", "x_ref", "dot_general", "größe", "a\nb", "bfloat16", "🜂", "\"quoted\""};
  return kWords[static_cast<size_t>(Number(0, kWords.size() - 1))] + std::to_string(Number(0, 99));
}

std::string RandomValues::Bytes() {
  std::string bytes(static_cast<size_t>(Number(0, 40)), '\0');
  for (char& byte : bytes) byte = static_cast<char>(Number(0, 255));
  return bytes;
}

SourceSpan RandomValues::ASpan() {
  return {.file = Text(),
          .line = Number(0, 9999),
          .column = Number(0, 200),
          .end_line = Number(0, 9999),
          .end_column = Number(0, 200),
          .function = Text()};
}

TensorType RandomValues::AType() {
  return {.dtype = Text(),
          .dims = Some([this] { return int64_t{Number(-1, 5000)}; }),
          .memory_space = Coin() ? "vmem" : "",
          .is_ref = Coin(),
          .weak_type = Coin()};
}

GraphValue RandomValues::AValue() {
  return {.id = static_cast<uint32_t>(Number(0, 1 << 30)), .type = AType(), .name = Text()};
}

Operand RandomValues::AnOperand() {
  Operand operand;
  if (Coin()) {
    operand.value = static_cast<uint32_t>(Number(0, 1 << 30));
    return operand;
  }
  operand.literal_type = AType();
  switch (Number(0, 3)) {
    case 0:
      operand.literal = static_cast<int64_t>(Big());
      break;
    case 1:
      operand.literal = Real();
      break;
    case 2:
      operand.literal = Coin();
      break;
    default:
      break;
  }
  return operand;
}

Attribute RandomValues::AnAttribute() {
  switch (Number(0, 5)) {
    case 0:
      return static_cast<int64_t>(Big());
    case 1:
      return Real();
    case 2:
      return Coin();
    case 3:
      return Text();
    case 4:
      return Some([this] { return static_cast<int64_t>(Big()); });
    default:
      return std::monostate();
  }
}

Operation RandomValues::AnOperation(int depth) {
  Operation operation;
  operation.name = Text();
  operation.inputs = Some([this] { return AnOperand(); });
  operation.outputs = Some([this] { return AValue(); });
  for (const std::string& name : Texts()) operation.attributes[name] = AnAttribute();
  if (depth > 0) operation.regions = Some([this, depth] { return AGraph(depth - 1); }, 2);
  for (size_t i = 0; i < operation.regions.size(); ++i) operation.region_names.push_back(Text());
  operation.spans = Some([this] { return ASpan(); });
  operation.effects = Texts();
  if (depth > 0 && Number(0, 3) == 0) operation.pallas.push_back(ACall(depth - 1));
  return operation;
}

Graph RandomValues::AGraph(int depth) {
  Graph graph;
  graph.name = Text();
  graph.inputs = Some([this] { return AValue(); });
  graph.constants = Some(
      [this] {
        return GraphConstant{.value = static_cast<uint32_t>(Number(0, 1 << 30)),
                             .type = AType(),
                             .size_bytes = Big(),
                             .sha256 = Text(),
                             .data = Bytes()};
      },
      2);
  graph.operations = Some([this, depth] { return AnOperation(depth); });
  graph.outputs = Some([this] { return AnOperand(); });
  return graph;
}

PallasCall RandomValues::ACall(int depth) {
  PallasCall call;
  call.name = Text();
  call.grid = Some([this] { return int64_t{Number(-1, 64)}; });
  call.num_scalar_prefetch = Number(0, 3);
  call.blocks = Some([this, depth] {
    BlockMapping mapping;
    mapping.origin = Text();
    mapping.is_output = Coin();
    mapping.array = AType();
    mapping.block = Some([this] {
      constexpr std::array kKinds = {BlockDim::Kind::kBlocked, BlockDim::Kind::kSqueezed, BlockDim::Kind::kElement,
                                     BlockDim::Kind::kBoundedSlice};
      return BlockDim{.kind = kKinds[static_cast<size_t>(Number(0, 3))], .size = Number(1, 4096)};
    });
    mapping.memory_space = Text();
    mapping.buffers = Number(1, 3);
    mapping.has_index_map = Coin();
    if (mapping.has_index_map) mapping.index_map = AGraph(std::max(depth - 1, 0));
    return mapping;
  });
  call.scratch = Some([this] { return AType(); });
  call.aliases = Some([this] { return std::pair(Number(0, 9), Number(0, 9)); });
  call.dimension_semantics = Texts();
  if (Coin()) call.vmem_limit_bytes = Number(0, 1 << 30);
  call.kernel = AGraph(depth);
  call.spans = Some([this] { return ASpan(); });
  call.kernel_span = ASpan();
  return call;
}

agents::Versions RandomValues::SomeVersions() {
  agents::Versions versions;
  for (const std::string& name : Texts()) versions[name] = Text();
  return versions;
}

Program RandomValues::AProgram() { return {.front_end = Text(), .versions = SomeVersions(), .main = AGraph(2)}; }

kernels::InputSpec RandomValues::AnInput() {
  using Step = kernels::PathStep;
  static constexpr std::array kNames = {"x", "params", "w_1", "größe"};
  const auto name = [this] { return std::string(kNames[static_cast<size_t>(Number(0, kNames.size() - 1))]); };
  kernels::InputSpec input;
  input.path.push_back({.kind = Step::Kind::kName, .name = name()});
  for (int i = Number(0, 3); i > 0; --i) {
    switch (Number(0, 2)) {
      case 0:
        input.path.push_back({.kind = Step::Kind::kAttribute, .name = name()});
        break;
      case 1:
        input.path.push_back({.kind = Step::Kind::kKey, .name = Coin() ? "a key" : "w\"\\]"});
        break;
      default:
        input.path.push_back({.kind = Step::Kind::kIndex, .name = {}, .index = Number(0, 12)});
        break;
    }
  }
  switch (Number(0, 2)) {
    case 0:
      input.dtype = Coin() ? "bfloat16" : "int32";
      input.dims = Some([this] { return int64_t{Number(0, 5000)}; });
      if (input.dtype == "int32" && Coin()) input.range.emplace(Number(-9, 0), Number(1, 99));
      break;
    case 1:
      input.kind = kernels::InputSpec::Kind::kStatic;
      input.static_json = Coin() ? "[1, \"a\", null]" : "8";
      break;
    default:
      input.kind = kernels::InputSpec::Kind::kPrngKey;
      break;
  }
  return input;
}

agents::Source RandomValues::ASource() {
  return {.file = Text(), .function = Text(), .files = Some([this] {
                                                return agents::FileText{.path = Text(), .text = Bytes()};
                                              })};
}

agents::Limits RandomValues::SomeLimits() {
  return {.deadline = std::chrono::milliseconds(Number(0, 1 << 30)), .memory_bytes = Big(), .file_bytes = Big()};
}

CodeError RandomValues::AnError() {
  return {.stage = Text(),
          .type = Text(),
          .message = Text(),
          .cause = Text(),
          .frames = Some([this] { return ASpan(); }),
          .traceback = Text()};
}

agents::Artefact RandomValues::AnArtefact() {
  agents::Artefact artefact{.chip = Text(), .exported = Bytes(), .sha256 = Text(), .error = {}};
  if (Coin()) artefact.error = AnError();
  return artefact;
}

agents::TraceRequest RandomValues::ATraceRequest() {
  return {.source = ASource(),
          .inputs = Some([this] { return AnInput(); }),
          .chips = Texts(),
          .want_program = Coin(),
          .want_artefacts = Coin(),
          .limits = SomeLimits()};
}

agents::CompileRequest RandomValues::ACompileRequest() {
  return {.artefact = AnArtefact(), .want_dumps = Coin(), .limits = SomeLimits()};
}

agents::JudgeRequest RandomValues::AJudgeRequest() {
  return {.candidate = ASource(),
          .reference = ASource(),
          .shapes =
              Some([this] { return agents::CheckShape{.name = Text(), .inputs = Some([this] { return AnInput(); })}; }),
          .seeds = Some([this] { return Big(); }),
          .tolerance = {.reference_factor = Real(), .floor_relative = Real()},
          .claims_kernel = Coin(),
          .chip = Text(),
          .reference_only = Coin(),
          .only_gates = Some([this] { return Text(); }),
          .limits = SomeLimits()};
}

bool RandomValues::Finished(agents::JobReport& report) {
  constexpr std::array kOutcomes = {agents::JobOutcome::kCancelled, agents::JobOutcome::kDeadline,
                                    agents::JobOutcome::kMemory,    agents::JobOutcome::kCrashed,
                                    agents::JobOutcome::kDisk,      agents::JobOutcome::kSandbox};
  if (Number(0, 3) == 0) report.outcome = kOutcomes[static_cast<size_t>(Number(0, kOutcomes.size() - 1))];
  report.detail = Text();
  report.role = Text();
  report.milliseconds = static_cast<uint32_t>(Number(0, 1 << 30));
  return report.outcome == agents::JobOutcome::kDone;
}

agents::TraceReport RandomValues::ATraceReport() {
  agents::TraceReport report;
  if (!Finished(report)) return report;
  if (Coin()) report.error = AnError();
  if (Coin()) report.program = AProgram();
  report.artefacts = Some([this] { return AnArtefact(); });
  report.inputs = Some([this] { return AnInput(); });
  report.inputs_origin = Text();
  report.closure = Some([this] {
    return agents::ClosureFile{.path = Text(), .sha256 = Text(), .is_user_file = Coin(), .functions = Texts()};
  });
  report.calls_seen = Some([this] { return ACall(1); });
  report.outputs = Some([this] { return AType(); });
  report.output_tree = Text();
  report.versions = SomeVersions();
  return report;
}

agents::CompileReport RandomValues::ACompileReport() {
  agents::CompileReport report;
  if (!Finished(report)) return report;
  if (Coin()) report.error = AnError();
  report.dumps = Some([this] { return agents::DumpFile{.name = Text(), .gzip = Bytes()}; });
  report.flops = Real();
  report.bytes_accessed = Real();
  report.argument_bytes = Big();
  report.output_bytes = Big();
  report.temporary_bytes = Big();
  report.hlo_gzip = Bytes();
  report.versions = SomeVersions();
  report.compile_milliseconds = static_cast<uint32_t>(Number(0, 1 << 30));
  return report;
}

agents::JudgeReport RandomValues::AJudgeReport() {
  agents::JudgeReport report;
  if (!Finished(report)) return report;
  report.gates = Some([this] {
    constexpr std::array kStates = {agents::GateStatus::kPass, agents::GateStatus::kFail, agents::GateStatus::kNotRun};
    return agents::GateResult{.gate = Text(), .status = kStates[static_cast<size_t>(Number(0, 2))], .reason = Text()};
  });
  report.comparisons = Some([this] {
    return agents::Comparison{.shape = Text(),
                              .distribution = Text(),
                              .seed = Big(),
                              .output = static_cast<uint32_t>(Number(0, 9)),
                              .candidate_error = Real(),
                              .reference_error = Real(),
                              .limit = Real(),
                              .pass = Coin(),
                              .detail = Text()};
  });
  if (Coin()) report.candidate_error = AnError();
  if (Coin()) report.reference_error = AnError();
  report.inputs_sha256 = Text();
  return report;
}

agents::ProbeReport RandomValues::AProbeReport() {
  agents::ProbeReport report;
  if (!Finished(report)) return report;
  report.chips = Some([this] {
    return agents::ChipProbe{.chip = Text(),
                             .compiles = Coin(),
                             .detail = Text(),
                             .milliseconds = static_cast<uint32_t>(Number(0, 1 << 30))};
  });
  return report;
}

}  // namespace kernelwright::worker
