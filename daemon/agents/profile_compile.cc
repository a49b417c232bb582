// The key holds everything that the dumps depend on, so that the cache needs no invalidation.
#include "daemon/agents/profile_compile.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/agents/evaluator.h"
#include "daemon/base/gzip.h"
#include "daemon/base/hash.h"

namespace kernelwright::agents {
namespace {

using nlohmann::json;

constexpr const char* kCacheFormat = "profile-1";  // raise when the blob or the compiler's flags change
constexpr size_t kDumpLimit = size_t{512} << 20;   // unpacked size of one dump

std::string KeyOf(const FrozenReference& frozen, const std::string& chip, const WorkerIdentity& identity) {
  Sha256 hash;
  hash.Field(kCacheFormat)
      .Field(ContentHash(frozen.original.files))
      .Field(frozen.original.file)
      .Field(frozen.original.function)
      .Field(kernels::FormatInputs(frozen.inputs))
      .Field(chip);
  for (const auto& [name, version] : identity.versions) hash.Field(name).Field(version);
  return hash.Hex();
}

std::string ToBlob(const std::vector<DumpFile>& dumps, const Versions& versions) {
  json value = {{"versions", versions}, {"dumps", json::array()}};
  for (const DumpFile& dump : dumps) {
    value["dumps"].push_back(
        {{"name", dump.name}, {"gzip", json::binary(std::vector<uint8_t>(dump.gzip.begin(), dump.gzip.end()))}});
  }
  const std::vector<uint8_t> bytes = json::to_cbor(value);
  return {bytes.begin(), bytes.end()};
}

bool FromBlob(const std::string& blob, std::vector<DumpFile>* dumps, Versions* versions) {
  try {
    const json value = json::from_cbor(blob.begin(), blob.end());
    *versions = value.at("versions").get<Versions>();
    for (const json& dump : value.at("dumps")) {
      const auto& bytes = dump.at("gzip").get_binary();
      dumps->push_back({dump.at("name"), std::string(bytes.begin(), bytes.end())});
    }
    return true;
  } catch (const json::exception&) {
    dumps->clear();  // a damaged entry is a miss
    return false;
  }
}

// Why a job that did not end well gives no profile.
Status OutcomeStatus(const JobReport& report, const std::string& what, const std::string& file) {
  switch (report.outcome) {
    case JobOutcome::kCancelled:
      return Status(ErrorKind::kCancelled, "cancelled while " + what, file);
    case JobOutcome::kDeadline:
      return Status(ErrorKind::kLimit, what + " did not end in time: " + report.detail, file,
                    "Raise the limit with --timeout.");
    case JobOutcome::kMemory:
      return Status(ErrorKind::kLimit, what + " used too much memory: " + report.detail, file,
                    "Profile at smaller inputs, given with --inputs.");
    case JobOutcome::kDisk:
      return Status(ErrorKind::kEnvironment, "no disk space is left for the worker: " + report.detail, file,
                    "Free space in the temporary folder.");
    case JobOutcome::kSandbox:
      return Status(ErrorKind::kEnvironment, "the worker could not be isolated: " + report.detail, file,
                    "Run `kernelwright doctor`, or choose with --sandbox.");
    default:
      return Status(ErrorKind::kUserCode, what + " crashed the process: " + report.detail, file,
                    "The compiler itself may have a bug; try the kernel at other block sizes.");
  }
}

}  // namespace

Expected<ProfileCompile> CompileForProfile(const FrozenReference& frozen, const std::string& chip, Toolchain& toolchain,
                                           const Limits& limits, BlobCache* cache, std::stop_token stop) {
  ProfileCompile result;
  std::vector<DumpFile> dumps;
  const std::string key = KeyOf(frozen, chip, toolchain.identity());
  if (cache != nullptr) {
    if (const auto blob = cache->Get(key)) result.cached = FromBlob(*blob, &dumps, &result.versions);
  }
  if (!result.cached) {
    TraceRequest trace;
    trace.source = frozen.original;
    trace.inputs = frozen.inputs;
    trace.chips = {chip};
    trace.want_program = false;
    trace.want_artefacts = true;
    trace.limits = limits;
    auto traced = toolchain.Trace(trace, stop);
    if (!traced) return Fail(traced.error());
    const std::string& file = frozen.original.file;
    if (traced->outcome != JobOutcome::kDone) return Fail(OutcomeStatus(*traced, "lowering", file));
    result.versions = traced->versions;
    result.error = traced->error;
    if (!result.error && traced->artefacts.empty()) {
      return Fail(ErrorKind::kInternal, "the worker returned no artefact for " + chip, "worker");
    }
    if (!result.error) result.error = traced->artefacts.front().error;
    if (result.error) return result;
    auto report = toolchain.Compile({std::move(traced->artefacts.front()), true, limits}, stop);
    if (!report) return Fail(report.error());
    if (report->outcome != JobOutcome::kDone) return Fail(OutcomeStatus(*report, "compiling", file));
    if (!report->versions.empty()) result.versions = report->versions;
    result.error = report->error;
    if (result.error) return result;
    dumps = std::move(report->dumps);
    if (cache != nullptr) cache->Put(key, ToBlob(dumps, result.versions));
  }
  result.dumps.reserve(dumps.size());
  for (const DumpFile& dump : dumps) {
    auto text = GzipDecompress(dump.gzip, kDumpLimit);
    if (!text) return Fail(text.error());
    result.dumps.push_back({dump.name, *std::move(text)});
  }
  return result;
}

}  // namespace kernelwright::agents
