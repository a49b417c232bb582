// The whole way from a source file to candidates on real kernels, with traces that jax made: testdata/kernels holds the
// sources, testdata/traces what tracing each variant of them gave. After a change of either, record again with
//   KW_TRACE_PYTHON=/path/to/python kw_kernels_test --gtest_filter='Tuning.*'
// (a Python with jax); testdata/trace.py does the tracing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "daemon/base/hash.h"
#include "daemon/kernels/candidates.h"
#include "daemon/kernels/inputs.h"
#include "daemon/kernels/params.h"
#include "daemon/kernels/slots.h"
#include "daemon/kernels/tunables.h"

namespace kernelwright::kernels {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

const std::filesystem::path kData = std::filesystem::path(KW_SOURCE_DIR) / "daemon/kernels/testdata";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// ---- JSON of testdata/trace.py to values ----

Operand ReadOperand(const json& value) {
  Operand operand;
  if (value.is_object()) {
    if (value["literal"].is_number_integer()) operand.literal = value["literal"].get<int64_t>();
  } else {
    operand.value = value.get<uint32_t>();
  }
  return operand;
}

Graph ReadGraph(const json& value) {
  Graph graph;
  for (const json& input : value["in"]) graph.inputs.push_back({input.get<uint32_t>(), {}, ""});
  for (const json& operation : value["operations"]) {
    Operation& op = graph.operations.emplace_back();
    op.name = operation["op"];
    for (const json& input : operation["in"]) op.inputs.push_back(ReadOperand(input));
    for (const json& output : operation["out"]) {
      GraphValue& result = op.outputs.emplace_back();
      result.id = output[0].get<uint32_t>();
      result.type.dtype = output[1].get<std::string>();
    }
    for (const json& region : operation["regions"]) op.regions.push_back(ReadGraph(region));
  }
  for (const json& output : value["out"]) graph.outputs.push_back(ReadOperand(output));
  return graph;
}

TensorType ReadType(const json& value) {
  TensorType type;
  type.dtype = value[0];
  type.dims = value[1].get<std::vector<int64_t>>();
  return type;
}

PallasCall ReadCall(const json& value) {
  PallasCall call;
  call.grid = value["grid"].get<std::vector<int64_t>>();
  call.num_scalar_prefetch = value["prefetch"];
  for (const json& item : value["blocks"]) {
    BlockMapping& block = call.blocks.emplace_back();
    block.origin = item["origin"];
    block.is_output = item["output"];
    block.array = ReadType(item["array"]);
    block.memory_space = item["space"] == "default" ? "vmem" : item["space"].get<std::string>();
    for (const json& dim : item["block"]) {
      const std::string kind = dim[0];
      block.block.push_back({kind == "squeezed"  ? BlockDim::Kind::kSqueezed
                             : kind == "element" ? BlockDim::Kind::kElement
                             : kind == "bounded" ? BlockDim::Kind::kBoundedSlice
                                                 : BlockDim::Kind::kBlocked,
                             dim[1].get<int64_t>()});
    }
    block.has_index_map = !item["index_map"].is_null();
    if (block.has_index_map) block.index_map = ReadGraph(item["index_map"]);
  }
  for (const json& item : value["scratch"]) call.scratch.push_back(ReadType(item));
  // The body is recorded as a hash: only whether it differs matters here.
  call.kernel.operations.emplace_back().attributes["hash"] = value["kernel"].get<std::string>();
  if (value.contains("semantics")) call.dimension_semantics = value["semantics"].get<std::vector<std::string>>();
  if (value.contains("limit") && !value["limit"].is_null()) call.vmem_limit_bytes = value["limit"].get<int64_t>();
  return call;
}

struct Trace {
  bool traced = false;
  std::vector<PallasCall> calls;
};

// Answers "what does tracing this text give" from a recording, or from Python while recording.
class Tracer {
 public:
  Tracer(const std::string& name, std::string function, json inputs)
      : path_(kData / "traces" / (name + ".json")), function_(std::move(function)), inputs_(std::move(inputs)) {
    const char* python = std::getenv("KW_TRACE_PYTHON");
    if (python != nullptr) {
      Start(python);
    } else {
      recording_ = json::parse(ReadFile(path_), nullptr, /*allow_exceptions=*/false);
    }
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  ~Tracer() {
    if (python_ == nullptr) return;
    pclose(python_);
    std::filesystem::remove_all(folder_);
    // One line per call and per trace, so that a change shows as a readable diff.
    std::ofstream out(path_);
    out << "{\"calls\": [";
    for (size_t i = 0; i < recording_["calls"].size(); ++i)
      out << (i == 0 ? "\n" : ",\n") << recording_["calls"][i].dump();
    out << "],\n\"traces\": {";
    const char* separator = "\n";
    for (const auto& [key, entry] : recording_["traces"].items()) {
      out << separator << json(key).dump() << ": " << entry.dump();
      separator = ",\n";
    }
    out << "}}\n";
  }

  Trace Run(const std::string& text) {
    const std::string key = Sha256Hex(text).substr(0, 16);
    if (python_ != nullptr && !recording_["traces"].contains(key)) Record(key, text);
    if (!recording_.is_object() || !recording_["traces"].contains(key)) {
      ADD_FAILURE() << "no trace is recorded for this variant in " << path_ << "; record again:\n" << text;
      return {};
    }
    const json& entry = recording_["traces"][key];
    Trace trace;
    trace.traced = entry["traced"];
    for (const json& index : entry["calls"]) trace.calls.push_back(ReadCall(recording_["calls"][index.get<size_t>()]));
    ++runs;
    return trace;
  }

  int runs = 0;

 private:
  void Start(const std::string& python) {
    std::string pattern = (std::filesystem::temp_directory_path() / "kw_trace_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    const std::string fifo = (folder_ / "answers").string();
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    const std::string command =
        "JAX_PLATFORMS=cpu '" + python + "' '" + (kData / "trace.py").string() + "' > '" + fifo + "'";
    python_ = popen(command.c_str(), "w");
    ASSERT_NE(python_, nullptr);
    answers_.open(fifo);
    recording_ = {{"calls", json::array()}, {"traces", json::object()}};
  }

  void Record(const std::string& key, const std::string& text) {
    const json request = {{"text", text}, {"function", function_}, {"inputs", inputs_}};
    std::fputs((request.dump() + "\n").c_str(), python_);
    std::fflush(python_);
    std::string line;
    std::getline(answers_, line);
    json answer = json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(answer.is_object()) << line;
    json indices = json::array();
    json& calls = recording_["calls"];
    for (const json& call : answer["calls"]) {
      const auto it = std::find(calls.begin(), calls.end(), call);
      indices.push_back(it - calls.begin());
      if (it == calls.end()) calls.push_back(call);
    }
    recording_["traces"][key] = {{"traced", answer["traced"]}, {"error", answer["error"]}, {"calls", indices}};
  }

  std::filesystem::path path_;
  std::string function_;
  json inputs_;
  json recording_;
  std::FILE* python_ = nullptr;
  std::ifstream answers_;
  std::filesystem::path folder_;
};

// ---- the loop ----

struct Tuned {
  std::string text;
  std::vector<TunableSite> sites;
  std::vector<PallasCall> base;
  std::vector<Parameter> parameters;
  std::vector<std::string> notes;
  int traces = 0;
};

// Probes, groups and settles as a caller does, then checks on each parameter that the calls computed without tracing
// are those that tracing gives, for some values.
Tuned Tune(const std::string& name, const std::string& function, const std::vector<json>& inputs) {
  Tuned tuned;
  tuned.text = ReadFile(kData / "kernels" / (name + ".py"));
  Tracer tracer(name, function, json(inputs));
  const SourceFile file("user.py", tuned.text);
  EXPECT_TRUE(file.CheckSyntax().ok());
  const auto entry = file.FindFunction(function);
  EXPECT_TRUE(entry.has_value());
  tuned.sites = FindTunableSites({{&file, false, {}}}, file, *entry);
  std::erase_if(tuned.sites, [](const TunableSite& site) { return site.priority > 2; });
  const Trace base = tracer.Run(tuned.text);
  EXPECT_TRUE(base.traced);
  tuned.base = base.calls;

  const auto run = [&](const std::vector<std::pair<size_t, int64_t>>& values) {
    std::vector<TextEdit> edits;
    edits.reserve(values.size());
    for (const auto& [site, value] : values) edits.push_back(IntegerEdit(tuned.sites[site], value));
    const auto text = ApplyEdits("user.py", tuned.text, edits);
    EXPECT_TRUE(text.has_value());
    return tracer.Run(*text);
  };
  std::vector<Observation> observations;
  for (size_t i = 0; i < tuned.sites.size(); ++i) {
    for (const int64_t value : ProbeValues(tuned.sites[i].value)) {
      const Trace trace = run({{i, value}});
      observations.push_back({i, value, trace.traced, trace.calls});
      if (!ProbeAgain(tuned.base, observations.back())) break;
    }
  }
  const Grouping grouping = GroupSites(tuned.sites, tuned.base, observations);
  tuned.notes = grouping.notes;
  std::vector<bool> settled(grouping.groups.size(), false);
  const auto settle = [&](const SiteGroup& group) {
    std::optional<Parameter> parameter = group.settled;
    for (size_t h = 0; h < group.hypotheses.size() && !parameter; ++h) {
      const Trace trace = run(group.hypotheses[h].site_values);
      auto result = Settle(group.hypotheses[h], tuned.base, trace.traced, trace.calls);
      if (result)
        parameter = *std::move(result);
      else
        tuned.notes.push_back(result.error().ToString());
    }
    if (parameter) tuned.parameters.push_back(*parameter);
    return parameter.has_value();
  };
  for (size_t g = 0; g < grouping.groups.size(); ++g) settled[g] = settle(grouping.groups[g]);
  for (const FallbackGroup& fallback : grouping.fallbacks) {
    const bool needed =
        std::any_of(fallback.replaces.begin(), fallback.replaces.end(), [&](size_t g) { return !settled[g]; });
    if (needed) settle(fallback.group);
  }
  for (Parameter& parameter : tuned.parameters) {
    if (const auto value = TailProbe(parameter, tuned.base)) {
      const Trace trace = run(*SiteValues(parameter, *value));
      ObserveTails(parameter, *value, tuned.base, trace.traced, trace.calls);
    }
  }
  for (const Parameter& parameter : tuned.parameters) {
    if (parameter.inside_kernel) continue;
    for (const int64_t value : LegalValues(parameter, tuned.base, {.max_values = 5})) {
      const Trace trace = run(*SiteValues(parameter, value));
      if (!trace.traced) continue;
      const auto computed = Substitute(tuned.base, {parameter}, {value});
      EXPECT_TRUE(computed.has_value());
      const auto differences = CompareCalls(*computed, trace.calls);
      EXPECT_TRUE(differences.has_value());
      for (const SlotChange& change : *differences) {
        ADD_FAILURE() << name << ": " << parameter.name << "=" << value << ": " << SlotText(change.slot, tuned.base)
                      << " is computed as " << change.before << " and traced as " << change.after;
      }
      EXPECT_EQ(WhyInconsistent(tuned.base, trace.calls), std::nullopt)
          << name << " " << parameter.name << "=" << value;
    }
  }
  tuned.traces = tracer.runs;
  return tuned;
}

// "name=value sites tails" of each parameter.
std::vector<std::string> Summary(const Tuned& tuned) {
  std::vector<std::string> lines;
  for (const Parameter& parameter : tuned.parameters) {
    std::string line = parameter.name + "=" + std::to_string(parameter.current) + " at";
    std::vector<int> rows;
    rows.reserve(parameter.members.size());
    for (const Member& member : parameter.members) rows.push_back(tuned.sites[member.site].position.line);
    std::sort(rows.begin(), rows.end());
    for (const int row : rows) line += " " + std::to_string(row);
    if (parameter.reduction) line += " reduction";
    if (parameter.tails == TailSupport::kRoundsUp) line += " tails";
    if (parameter.inside_kernel) line += " inside";
    lines.push_back(line);
  }
  return lines;
}

std::string Edited(const Tuned& tuned, const std::vector<int64_t>& values) {
  const auto edits = ParameterEdits(tuned.sites, tuned.parameters, values);
  EXPECT_TRUE(edits.has_value());
  return ApplyEdits("user.py", tuned.text, *edits).value();
}

json Tensor(const char* dtype, const std::vector<int64_t>& dims) { return json::array({dtype, dims}); }

TEST(Tuning, NamedParametersOfAProduct) {
  const json square = Tensor("bfloat16", {4096, 4096});
  const Tuned tuned = Tune("matmul_named", "matmul", {square, square});
  EXPECT_THAT(Summary(tuned),
              UnorderedElementsAre("bm=128 at 30 tails", "bn=128 at 30 tails", "bk=128 at 30 reduction tails"));
  EXPECT_THAT(Edited(tuned, {512, 1024, 256}), HasSubstr("def matmul(x, y, bm=512, bn=1024, bk=256):"));
}

TEST(Tuning, LiteralsOfAProductAreTiedByTheirGridAxis) {
  const json square = Tensor("bfloat16", {4096, 4096});
  const Tuned tuned = Tune("matmul_literals", "matmul", {square, square});
  EXPECT_THAT(Summary(tuned),
              UnorderedElementsAre("block of args[0][0]=128 at 25 27 30 32", "block of args[1][1]=128 at 25 28 30 32",
                                   "block of args[0][1]=128 at 25 27 28 reduction"));
  const std::string edited = Edited(tuned, {512, 1024, 256});
  EXPECT_THAT(edited, HasSubstr("grid=(m // 512, n // 1024, k // 256)"));
  EXPECT_THAT(edited, HasSubstr("pl.BlockSpec((512, 256), lambda i, j, s: (i, s))"));
  EXPECT_THAT(edited, HasSubstr("pl.BlockSpec((256, 1024), lambda i, j, s: (s, j))"));
  EXPECT_THAT(edited, HasSubstr("scratch_shapes=[pltpu.VMEM((512, 1024), jnp.float32)]"));
}

TEST(Tuning, OneConstantForAllBlocks) {
  const json square = Tensor("bfloat16", {4096, 4096});
  const Tuned tuned = Tune("matmul_constant", "matmul", {square, square});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("BLOCK=128 at 7 reduction"));
}

TEST(Tuning, LiteralGridAndLiteralsInTheBody) {
  const Tuned tuned = Tune("matmul_body", "matmul", {Tensor("bfloat16", {1024, 512}), Tensor("bfloat16", {512, 2048})});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("block of args[0][0]=128 at 12 18 20 23 tails",
                                                   "block of args[1][1]=256 at 12 18 21 23 tails"));
  const std::string edited = Edited(tuned, {256, 512});
  EXPECT_THAT(edited, HasSubstr("jnp.zeros((256, 512), jnp.float32)"));
  EXPECT_THAT(edited, HasSubstr("grid=(4, 4)"));
}

TEST(Tuning, ArgumentOfAHelper) {
  const Tuned tuned = Tune("rms_norm", "rms_norm", {Tensor("bfloat16", {8192, 4096}), Tensor("bfloat16", {4096})});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("rows=8 at 9 tails"));
}

TEST(Tuning, AttentionWithClampedIndexMaps) {
  const json heads = Tensor("bfloat16", {8, 2048, 128});
  const Tuned tuned = Tune("attention", "attention", {heads, heads, heads});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("bq=128 at 9", "bk=128 at 9 reduction"));
}

TEST(Tuning, LibraryProductCalledWithBlockArguments) {
  const json square = Tensor("bfloat16", {2048, 2048});
  const Tuned tuned = Tune("library_matmul", "product", {square, square});
  EXPECT_THAT(Summary(tuned),
              UnorderedElementsAre("block_shape[0]=256 at 6", "block_shape[1]=128 at 6", "block_k=512 at 6 reduction"));
}

TEST(Tuning, LibraryAttentionWithBlockSizesObject) {
  const json heads = Tensor("bfloat16", {1, 8, 2048, 128});
  const Tuned tuned = Tune("library_attention", "attention", {heads, heads, heads});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("block_q=256 at 4 tails", "block_k_major=512 at 4 reduction",
                                                   "block_k=128 at 4 inside"));
}

TEST(Tuning, GroupedProductWithPrefetchedIndexMaps) {
  const Tuned tuned =
      Tune("library_gmm", "grouped",
           {Tensor("bfloat16", {2048, 1024}), Tensor("bfloat16", {8, 1024, 2048}), Tensor("int32", {8})});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("tiling[0]=128 at 6 reduction", "tiling[1]=256 at 6 reduction tails",
                                                   "tiling[2]=512 at 6 tails"));
}

TEST(Tuning, ChunksOfManualCopies) {
  const Tuned tuned = Tune("chunks", "sum_chunks", {Tensor("float32", {4096, 512})});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("rows=64 at 9 inside"));
}

TEST(Tuning, TwoDimensionsOnOneGridAxis) {
  const json table = Tensor("float32", {1000, 2048});
  const Tuned tuned = Tune("fused_grid", "add", {table, table});
  EXPECT_THAT(Summary(tuned), UnorderedElementsAre("TILE_M=64 at 5 tails", "tile_n=256 at 13"));
}

}  // namespace
}  // namespace kernelwright::kernels
