// Reads the table of changed names; see api_names.h.
#include "daemon/diagnose/api_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace kernelwright::diagnose {
namespace {

using nlohmann::json;

std::optional<ApiName::Kind> KindOf(std::string_view word) {
  using Kind = ApiName::Kind;
  constexpr std::array<std::pair<std::string_view, Kind>, 10> kKinds = {{{"rename", Kind::kRename},
                                                                         {"keyword", Kind::kKeyword},
                                                                         {"keyword_removed", Kind::kKeywordRemoved},
                                                                         {"argument_order", Kind::kArgumentOrder},
                                                                         {"load", Kind::kLoad},
                                                                         {"store", Kind::kStore},
                                                                         {"repeat", Kind::kRepeat},
                                                                         {"indexing_mode", Kind::kIndexingMode},
                                                                         {"params_dict", Kind::kParamsDict},
                                                                         {"removed", Kind::kRemoved}}};
  for (const auto& [name, kind] : kKinds) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

Status Bad(size_t entry, std::string_view what) {
  return {ErrorKind::kInternal, "entry " + std::to_string(entry) + ": " + std::string(what), "table of changed names",
          "Correct agents/api_names.json"};
}

std::vector<int> Numbers(std::string_view version) {
  std::vector<int> numbers;
  size_t i = 0;
  while (i < version.size() && std::isdigit(static_cast<unsigned char>(version[i])) != 0) {
    int value = 0;
    while (i < version.size() && std::isdigit(static_cast<unsigned char>(version[i])) != 0) {
      value = value < 1000000 ? value * 10 + (version[i] - '0') : value;
      ++i;
    }
    numbers.push_back(value);
    if (i < version.size() && version[i] == '.') ++i;
  }
  return numbers;
}

}  // namespace

Expected<ApiNames> ParseApiNames(std::string_view text) {
  const json table = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (table.is_discarded() || !table.is_object() || !table.contains("names") || !table["names"].is_array()) {
    return Fail({ErrorKind::kInternal, "it is not a JSON object with a list \"names\"", "table of changed names",
                 "Correct agents/api_names.json"});
  }
  std::vector<ApiName> names;
  for (const json& entry : table["names"]) {
    const size_t number = names.size();
    if (!entry.is_object()) return Fail(Bad(number, "is not an object"));
    ApiName name;
    std::string kind;
    const std::array<std::pair<const char*, std::string*>, 10> fields = {{{"id", &name.id},
                                                                          {"name", &name.name},
                                                                          {"kind", &kind},
                                                                          {"module", &name.module},
                                                                          {"old", &name.old_name},
                                                                          {"argument", &name.argument},
                                                                          {"new", &name.new_name},
                                                                          {"removed", &name.removed},
                                                                          {"deprecated", &name.deprecated},
                                                                          {"advice", &name.advice}}};
    for (size_t i = 0; i < fields.size(); ++i) {
      const auto& [field, target] = fields[i];
      const auto it = entry.find(field);
      if (it != entry.end() && it->is_string()) {
        *target = it->get<std::string>();
      } else if (i < 5 || it != entry.end()) {
        return Fail(Bad(number, "\"" + std::string(field) + "\" is missing or not a text"));
      }
    }
    const auto known = KindOf(kind);
    if (!known) return Fail(Bad(number, "unknown kind \"" + kind + "\""));
    name.kind = *known;
    const bool needs_new = name.kind == ApiName::Kind::kRename || name.kind == ApiName::Kind::kKeyword;
    if (needs_new && name.new_name.empty()) return Fail(Bad(number, "\"new\" is missing"));
    if (name.removed.empty() && name.deprecated.empty()) return Fail(Bad(number, "no version of the change"));
    names.push_back(std::move(name));
  }
  return ApiNames(std::move(names));
}

int CompareVersions(std::string_view a, std::string_view b) {
  std::vector<int> left = Numbers(a);
  std::vector<int> right = Numbers(b);
  left.resize(std::max(left.size(), right.size()), 0);
  right.resize(left.size(), 0);
  if (left == right) return 0;
  return left < right ? -1 : 1;
}

}  // namespace kernelwright::diagnose
