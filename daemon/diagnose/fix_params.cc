// Compiler parameters: dimension semantics as long as the grid and true to the reductions, a VMEM limit that the chips
// have.
#include <algorithm>
#include <optional>
#include <regex>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

Node ArgumentNamed(const FixRequest& request, std::string_view name) {
  const auto wanted = [&](const Node& node) {
    return node.Is("keyword_argument") && node.Field("name").text() == name;
  };
  const Node around = Enclosing(request.source.place(), {"keyword_argument"});
  if (around && wanted(around)) return around.Field("value");
  if (const auto here = request.source.AtPlace(wanted); here.size() == 1) return here.front().Field("value");
  if (const auto launch = LaunchOf(request.source, request.source.place())) {
    auto inside = FindAll(launch->call, wanted);
    const Node params = Keyword(launch->call, "compiler_params");
    if (inside.empty() && params.Is("identifier")) inside = FindAll(request.source.Resolve(params), wanted);
    if (inside.size() == 1) return inside.front().Field("value");
  }
  return {};
}

std::string TupleText(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return "(" + text + (parts.size() == 1 ? ",)" : ")");
}

}  // namespace

Fixes PadSemantics(const FixRequest& request) {
  const Node value = ArgumentNamed(request, "dimension_semantics");
  if (!value || !IsSequence(StripParentheses(value))) return {};
  size_t rank = 0;
  std::smatch match;
  const std::string& raw = request.diagnostic.raw;
  if (std::regex_search(raw, match, std::regex(R"(len\(grid\)=(\d+))"))) {
    rank = std::stoul(match[1].str());
  } else if (const auto launch = LaunchOf(request.source, value)) {
    rank = launch->grid.size();
  }
  std::vector<std::string> parts;
  for (const Node& element : Elements(value)) parts.emplace_back(element.text());
  if (rank == 0 || parts.size() == rank) return {};
  const bool longer = parts.size() > rank;
  const bool quoted = parts.empty() || parts.front().front() == '"' || parts.front().front() != '\'';
  parts.resize(rank, quoted ? "\"arbitrary\"" : "'arbitrary'");
  FixBuilder builder(request.source);
  builder.Replace(value, TupleText(parts));
  return {
      builder.Build(longer ? "Keep one entry per grid axis" : "Fill up with \"arbitrary\", one entry per grid axis")};
}

Fixes MakeArbitrary(const FixRequest& request) {
  const Node value = ArgumentNamed(request, "dimension_semantics");
  if (!value) return {};
  const auto elements = Elements(value);
  const auto is_parallel = [](const Node& element) {
    std::string text(element.text());
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text.find("parallel") != std::string::npos;
  };
  const auto launch = LaunchOf(request.source, value);
  std::optional<std::set<int>> axes;
  if (const PallasCall* call = launch ? TracedCall(request.source, *launch, request.context) : nullptr) {
    axes = kernels::RevisitingAxes(*call);
  }
  FixBuilder builder(request.source);
  for (size_t a = 0; a < elements.size(); ++a) {
    if (!is_parallel(elements[a])) continue;
    const bool reduction = axes ? axes->contains(static_cast<int>(a)) : elements.size() == 1;
    if (reduction) builder.Replace(elements[a], "\"arbitrary\"");
  }
  if (builder.empty()) return {};
  return {builder.Build("Declare the reduction axis \"arbitrary\"")};
}

Fixes LowerVmemLimit(const FixRequest& request) {
  const Node value = ArgumentNamed(request, "vmem_limit_bytes");
  if (!value || request.context.chips.empty()) return {};
  int64_t smallest = INT64_MAX;
  std::string chip;
  for (const cost::Chip* each : request.context.chips) {
    const auto bytes = static_cast<int64_t>(each->vmem_bytes.value);
    if (bytes >= smallest) continue;
    smallest = bytes;
    chip = each->name;
  }
  Node literal = StripParentheses(value);
  if (literal.Is("identifier")) literal = StripParentheses(request.source.Resolve(literal));
  const auto now = kernels::EvaluateInteger(literal);
  if (!now || *now <= smallest) return {};
  std::string text = kernels::FormatInteger(literal.text(), smallest);
  if (text == std::to_string(smallest) && smallest % (1 << 20) == 0) text = std::to_string(smallest >> 20) + " << 20";
  FixBuilder builder(request.source);
  builder.Replace(literal, text);
  return {builder.Build("Lower the limit to the " + std::to_string(smallest >> 20) + " MiB of " + chip)};
}

}  // namespace kernelwright::diagnose
