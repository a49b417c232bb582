// See check_sarif.h. Columns count code points, as ours do, and the log says so.
#include "daemon/cli/check_sarif.h"

#include <filesystem>
#include <map>

namespace kernelwright::cli {
namespace {

using diagnose::Diagnostic;
using diagnose::Severity;
using nlohmann::json;

constexpr const char* kSchema =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

std::string PercentEncoded(const std::string& path) {
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string uri;
  for (const char byte : path) {
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                       std::string_view("/-._~").find(byte) != std::string_view::npos;
    if (plain) {
      uri += byte;
    } else {
      const auto value = static_cast<unsigned char>(byte);
      uri += '%';
      uri += kHex[value >> 4];
      uri += kHex[value & 15];
    }
  }
  return uri;
}

json Artifact(const std::string& file, const std::string& folder) {
  const std::filesystem::path relative = std::filesystem::path(file).lexically_relative(folder);
  if (!folder.empty() && !relative.empty() && *relative.begin() != "..") {
    return {{"uri", PercentEncoded(relative.generic_string())}, {"uriBaseId", "%SRCROOT%"}};
  }
  return {{"uri", "file://" + PercentEncoded(file)}};
}

json Location(const diagnose::Place& place, const std::string& folder) {
  json physical = {{"artifactLocation", Artifact(place.file, folder)}};
  if (place.line > 0) {
    json region = {{"startLine", place.line}};
    if (place.column > 0) region["startColumn"] = place.column;
    if (place.end_line >= place.line) region["endLine"] = place.end_line;
    if (place.end_column > 0 && place.column > 0) region["endColumn"] = place.end_column;
    physical["region"] = std::move(region);
  }
  json location = {{"physicalLocation", std::move(physical)}};
  if (place.cell > 0) {
    const std::string cell = "cell " + std::to_string(place.cell);
    location["logicalLocations"] = json::array({{{"name", cell}, {"fullyQualifiedName", cell}}});
  }
  return location;
}

const char* Level(Severity severity) {
  switch (severity) {
    case Severity::kError:
      return "error";
    case Severity::kWarning:
      return "warning";
    case Severity::kInformation:
    case Severity::kHint:
      break;
  }
  return "note";
}

json FixJson(const diagnose::Fix& fix, const std::string& folder) {
  std::map<std::string, json> changes;
  for (const kernels::TextEdit& edit : fix.edits) {
    json& change = changes[edit.file];
    if (change.is_null()) {
      change = {{"artifactLocation", Artifact(edit.file, folder)}, {"replacements", json::array()}};
    }
    change["replacements"].push_back(
        {{"deletedRegion", {{"byteOffset", edit.range.begin}, {"byteLength", edit.range.end - edit.range.begin}}},
         {"insertedContent", {{"text", edit.replacement}}}});
  }
  json list = json::array();
  for (auto& [file, change] : changes) list.push_back(std::move(change));
  return {{"description", {{"text", fix.title}}}, {"artifactChanges", std::move(list)}};
}

}  // namespace

json CheckSarif(const agents::CheckResult& result, const std::string& folder, const std::string& version) {
  json rules = json::array();
  std::map<std::string, size_t> rule_index;
  json results = json::array();
  for (const Diagnostic& diagnostic : result.diagnostics) {
    const auto [rule, added] = rule_index.try_emplace(diagnostic.id, rules.size());
    if (added) {
      json entry = {{"id", diagnostic.id}, {"shortDescription", {{"text", diagnostic.name}}}};
      if (!diagnostic.name.empty()) entry["name"] = diagnostic.name;
      if (!diagnostic.cause.empty()) entry["fullDescription"] = {{"text", diagnostic.cause}};
      if (!diagnostic.advice.empty()) entry["help"] = {{"text", diagnostic.advice}};
      rules.push_back(std::move(entry));
    }
    json entry = {{"ruleId", diagnostic.id},
                  {"ruleIndex", rule->second},
                  {"level", Level(diagnostic.severity)},
                  {"message", {{"text", diagnostic.message}}},
                  {"locations", json::array({Location(diagnostic.place, folder)})},
                  {"properties",
                   {{"chips", diagnostic.chips},
                    {"stage", diagnose::StageName(diagnostic.stage)},
                    {"page", diagnostic.page},
                    {"raw", diagnostic.raw}}}};
    if (!diagnostic.related.empty()) {
      entry["relatedLocations"] = json::array();
      for (const diagnose::Related& related : diagnostic.related) {
        json location = Location(related.place, folder);
        location["message"] = {{"text", related.message}};
        entry["relatedLocations"].push_back(std::move(location));
      }
    }
    if (!diagnostic.fixes.empty()) {
      entry["fixes"] = json::array();
      for (const diagnose::Fix& fix : diagnostic.fixes) entry["fixes"].push_back(FixJson(fix, folder));
    }
    results.push_back(std::move(entry));
  }
  json invocation = {{"executionSuccessful", result.failure.ok()}, {"exitCode", agents::CheckExitCode(result)}};
  if (!result.failure.ok()) {
    invocation["toolExecutionNotifications"] =
        json::array({{{"level", "error"}, {"message", {{"text", result.failure.ToString()}}}}});
  }
  json run = {{"tool", {{"driver", {{"name", "kernelwright"}, {"version", version}, {"rules", std::move(rules)}}}}},
              {"columnKind", "unicodeCodePoints"},
              {"invocations", json::array({std::move(invocation)})},
              {"results", std::move(results)}};
  if (!folder.empty()) {
    run["originalUriBaseIds"] = {{"%SRCROOT%", {{"uri", "file://" + PercentEncoded(folder) + "/"}}}};
  }
  return {{"$schema", kSchema}, {"version", "2.1.0"}, {"runs", json::array({std::move(run)})}};
}

}  // namespace kernelwright::cli
