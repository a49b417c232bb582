// See captures.h.
#include "daemon/kernels/captures.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/base/files.h"
#include "daemon/base/hash.h"

namespace kernelwright::kernels {
namespace {

using nlohmann::json;

constexpr size_t kMaxRecordBytes = size_t{16} << 20;
constexpr int kVersion = 1;

std::string Dims(const json& shape) {
  std::string text;
  for (const json& dim : shape) text += (text.empty() ? "" : ",") + std::to_string(dim.get<int64_t>());
  return "[" + text + "]";
}

// One leaf in the form of --inputs; throws what nlohmann throws on a field of another type.
Expected<std::string> Item(const json& leaf, const std::string& where) {
  const std::string path = leaf.at("path");
  const std::string kind = leaf.at("kind");
  if (kind == "static") {
    const json& value = leaf.at("value");
    return path + "=" + (value.is_boolean() ? (value.get<bool>() ? "True" : "False") : value.dump());
  }
  if (kind == "key" && leaf.at("shape").empty()) return path + "=prng";
  if (kind == "array") {
    std::string text = path + "=" + ShortDtype(leaf.at("dtype").get<std::string>()) + Dims(leaf.at("shape"));
    if (const auto range = leaf.find("range"); range != leaf.end()) {
      text +=
          "{" + std::to_string(range->at(0).get<int64_t>()) + ".." + std::to_string(range->at(1).get<int64_t>()) + "}";
    }
    return text;
  }
  return Fail(ErrorKind::kUserCode,
              "the captured argument " + path + " is " +
                  (kind == "key" ? "an array of keys" : "a " + leaf.value("type", std::string("value"))) +
                  ", which inputs cannot describe",
              where, "Wrap the function in one that fixes it, and capture that.");
}

}  // namespace

bool SuppliesInputs(const SourceFile& source) {
  return std::any_of(source.functions().begin(), source.functions().end(), [](const FunctionInfo& function) {
    return function.top_level && (function.name == "create_inputs" || function.name == "get_inputs");
  });
}

std::filesystem::path CapturesFolder(const std::filesystem::path& state_folder) { return state_folder / "captures"; }

std::filesystem::path CaptureFile(const std::filesystem::path& captures, const std::string& file,
                                  const std::string& function) {
  return captures / Sha256Hex(file).substr(0, 16) / (function + ".json");
}

Expected<CaptureSummary> ReadCapture(std::string_view text, const std::string& where) {
  const Status malformed(ErrorKind::kInternal, "the record of captured calls cannot be read", where,
                         "Capture the function again.");
  try {
    const json record = json::parse(text);
    if (record.at("version") != kVersion || record.at("calls").empty()) return Fail(malformed);
    CaptureSummary summary;
    std::string inputs;
    for (const json& leaf : record["calls"][0].at("leaves")) {
      auto item = Item(leaf, where);
      if (!item) return Fail(item.error());
      inputs += (inputs.empty() ? "" : " ") + *item;
    }
    for (const json& call : record["calls"]) {
      ++summary.calls;
      for (const json& leaf : call.at("leaves")) summary.values += leaf.contains("key") ? 1 : 0;
    }
    InputsResult parsed = ParseInputsText(inputs);
    if (const auto* error = std::get_if<InputsError>(&parsed)) {
      return Fail(ErrorKind::kUserCode, "the captured inputs cannot be used: " + error->message, where, error->remedy);
    }
    summary.inputs = std::get<std::vector<InputSpec>>(std::move(parsed));
    return summary;
  } catch (const json::exception&) {
    return Fail(malformed);
  }
}

Expected<std::optional<std::vector<InputSpec>>> CapturedInputs(const std::string& captures, const std::string& file,
                                                               const std::string& function) {
  if (captures.empty()) return std::optional<std::vector<InputSpec>>();
  const std::filesystem::path path = CaptureFile(captures, file, function);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::optional<std::vector<InputSpec>>();
  auto text = ReadFile(path, kMaxRecordBytes);
  if (!text) return Fail(text.error());
  auto summary = ReadCapture(*text, path.string());
  if (!summary) return Fail(summary.error());
  return std::optional<std::vector<InputSpec>>(std::move(summary->inputs));
}

}  // namespace kernelwright::kernels
