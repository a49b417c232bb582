// Index maps: number of ids taken and returned, whole division, ids in blocks instead of elements, order of the grid.
#include <algorithm>
#include <optional>
#include <regex>

#include "daemon/diagnose/fix_families.h"
#include "daemon/diagnose/fix_launch.h"
#include "daemon/kernels/index_map.h"
#include "daemon/kernels/literals.h"

namespace kernelwright::diagnose {
namespace {

// The lambda, function or BlockSpec that the place names, as (map, spec); spec is null when only the map is known.
struct MapSite {
  Node map;
  Node spec;
};

MapSite SiteOf(const FixRequest& request) {
  const Node place = request.source.place();
  MapSite site;
  site.spec = [&] {
    for (Node at = place; at; at = at.parent()) {
      if (IsCallOf(at, {"BlockSpec"})) return at;
    }
    return Node();
  }();
  site.map = Enclosing(place, {"lambda"});
  if (site.map && site.spec) return site;
  if (place.Is("function_definition")) site.map = place;
  if (!site.spec) {
    const auto specs = request.source.AtPlace([](const Node& node) { return IsCallOf(node, {"BlockSpec"}); });
    if (specs.size() == 1) site.spec = specs.front();
  }
  if (!site.spec && site.map) {
    // A map with a name: the spec that uses it.
    for (const Launch& launch : FindLaunches(request.source)) {
      for (const auto* specs : {&launch.in_specs, &launch.out_specs}) {
        for (const Node& spec : *specs) {
          if (spec && IndexMap(request.source, spec) == site.map) site.spec = spec;
        }
      }
    }
  }
  if (!site.map && site.spec) site.map = IndexMap(request.source, site.spec);
  return site;
}

// What the map returns: the lambda's body or the value of its only return statement.
Node Returned(const Node& map) {
  if (map.Is("lambda")) return map.Field("body");
  const auto returns = FindAll(map, [](const Node& node) { return node.Is("return_statement"); });
  if (returns.size() != 1) return {};
  const auto values = returns.front().NamedChildren();
  return values.size() == 1 ? values.front() : Node();
}

std::vector<Node> Parameters(const Node& map) { return map.Field("parameters").NamedChildren(); }

std::optional<int> CapturedNumber(const std::string& text, const char* pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) return std::nullopt;
  return std::stoi(match[1].str());
}

std::vector<std::string> Texts(const std::vector<Node>& nodes) {
  std::vector<std::string> texts;
  texts.reserve(nodes.size());
  for (const Node& node : nodes) texts.emplace_back(node.text());
  return texts;
}

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// A name for one more grid id that nothing in the map uses.
std::string FreshId(const Node& map, const std::vector<std::string>& taken) {
  for (const char* name : {"i", "j", "k", "l", "m", "n", "grid_id"}) {
    if (std::find(taken.begin(), taken.end(), name) == taken.end() && !Mentions(map, name)) return name;
  }
  return "_" + std::to_string(taken.size());
}

}  // namespace

Fixes AppendBlockIds(const FixRequest& request) {
  const MapSite site = SiteOf(request);
  const Node value = Returned(site.map);
  if (!value) return {};
  const auto ids = Elements(value);
  std::optional<int> wanted = CapturedNumber(request.diagnostic.raw, R"(must return (\d+) values)");
  if (!wanted && site.spec) {
    const Node shape = BlockShape(site.spec);
    if (IsSequence(shape)) wanted = static_cast<int>(shape.NamedChildren().size());
  }
  if (!wanted || static_cast<int>(ids.size()) >= *wanted || ids.empty()) return {};
  std::vector<std::string> texts = Texts(ids);
  texts.resize(static_cast<size_t>(*wanted), "0");
  FixBuilder builder(request.source);
  builder.Replace(value, "(" + Join(texts) + ")");
  return {builder.Build("Return one block index per block dimension: (" + Join(texts) + ")")};
}

Fixes MatchGridIds(const FixRequest& request) {
  const MapSite site = SiteOf(request);
  if (!site.map) return {};
  const Node value = Returned(site.map);
  const std::string& raw = request.diagnostic.raw;
  std::vector<std::string> texts;
  for (const Node& parameter : Parameters(site.map)) {
    if (!parameter.Is("identifier")) return {};
    texts.emplace_back(parameter.text());
  }
  const size_t had = texts.size();
  size_t grid_rank = 0;
  size_t prefetch = 0;
  if (const auto launch = LaunchOf(request.source, site.spec ? site.spec : site.map)) {
    grid_rank = launch->grid.size();
    prefetch = static_cast<size_t>(launch->num_scalar_prefetch);
  }
  size_t wanted = grid_rank + prefetch;
  if (const auto given = CapturedNumber(raw, R"((\d+) (?:positional arguments? )?(?:was|were) given)")) {
    wanted = static_cast<size_t>(*given);
    if (grid_rank == 0) grid_rank = wanted - std::min(wanted, prefetch);
  }
  if (wanted == 0 || wanted == had) return {};
  if (wanted < had) {
    for (size_t i = wanted; i < had; ++i) {
      if (value && Mentions(value, texts[i])) return {};
    }
    texts.resize(wanted);
  } else if (prefetch > 0 && had >= grid_rank) {
    texts.emplace_back("*_");
  } else {
    while (texts.size() < wanted - prefetch) texts.push_back(FreshId(site.map, texts));
    if (prefetch > 0) texts.emplace_back("*_");
  }
  FixBuilder builder(request.source);
  const Node parameters = site.map.Field("parameters");
  const std::string list = Join(texts);
  if (site.map.Is("lambda") && parameters) {
    builder.Replace(parameters, list);
  } else if (site.map.Is("lambda")) {
    builder.Insert(site.map.begin() + 6, (list.empty() ? "" : " ") + list);
  } else {
    builder.Replace(parameters, "(" + list + ")");
  }
  return {builder.Build("Take one argument per grid axis" +
                        std::string(prefetch > 0 ? " and the prefetched refs" : "") + ": " + list)};
}

Fixes DivideWhole(const FixRequest& request) {
  const MapSite site = SiteOf(request);
  const Node value = Returned(site.map);
  FixBuilder builder(request.source);
  for (const Node& node : FindAll(value, [](const Node& n) { return n.Is("binary_operator"); })) {
    const Node op = node.Field("operator");
    if (op.text() == "/") builder.Replace(op, "//");
  }
  if (builder.empty()) return {};
  return {builder.Build("Divide with // so that the block index stays an integer")};
}

Fixes DropBlockFactor(const FixRequest& request) {
  FixBuilder builder(request.source);
  const MapSite site = SiteOf(request);
  std::vector<Node> specs;
  if (site.spec) {
    specs.push_back(site.spec);
  } else if (const auto launch = LaunchOf(request.source, request.source.place())) {
    for (const auto* list : {&launch->in_specs, &launch->out_specs}) {
      for (const Node& spec : *list) {
        if (spec && std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
      }
    }
  }
  for (const Node& spec : specs) {
    const Node map = IndexMap(request.source, spec);
    const auto sizes = Elements(BlockShape(spec));
    const auto ids = Elements(Returned(map));
    if (ids.size() != sizes.size()) continue;
    const auto parameters = Texts(Parameters(map));
    for (size_t d = 0; d < ids.size(); ++d) {
      const Node id = StripParentheses(ids[d]);
      if (!id.Is("binary_operator") || id.Field("operator").text() != "*") continue;
      for (const auto& [one, other] :
           {std::pair(id.Field("left"), id.Field("right")), std::pair(id.Field("right"), id.Field("left"))}) {
        const auto number = kernels::EvaluateInteger(other);
        const bool block = other.text() == sizes[d].text() || (number && number == kernels::EvaluateInteger(sizes[d]));
        if (!block || std::find(parameters.begin(), parameters.end(), one.text()) == parameters.end()) continue;
        builder.Replace(ids[d], std::string(one.text()));
        break;
      }
    }
  }
  if (builder.empty()) return {};
  return {builder.Build("Return block numbers, not element offsets")};
}

Fixes MoveReductionLast(const FixRequest& request) {
  const auto launch = LaunchOf(request.source, request.source.place());
  if (!launch || !launch->kernel || launch->grid.size() < 2 || launch->num_scalar_prefetch > 0) return {};
  const PallasCall* call = TracedCall(request.source, *launch, request.context);
  if (call == nullptr || call->grid.size() != launch->grid.size()) return {};
  const auto revisiting = kernels::RevisitingAxes(*call);
  if (!revisiting || revisiting->empty()) return {};
  // Old axis of each new one: those that choose the output block first, in their order.
  std::vector<size_t> order;
  for (const bool last : {false, true}) {
    for (size_t a = 0; a < launch->grid.size(); ++a) {
      if (revisiting->contains(static_cast<int>(a)) == last) order.push_back(a);
    }
  }
  if (std::is_sorted(order.begin(), order.end())) return {};
  const auto permute = [&](FixBuilder& builder, const std::vector<Node>& nodes) {
    for (size_t a = 0; a < order.size(); ++a) {
      if (order[a] != a) builder.Replace(nodes[a], std::string(nodes[order[a]].text()));
    }
  };
  FixBuilder builder(request.source);
  permute(builder, launch->grid);
  std::vector<Node> maps;
  for (const auto* specs : {&launch->in_specs, &launch->out_specs}) {
    for (const Node& spec : *specs) {
      if (!spec) return {};
      const Node map = IndexMap(request.source, spec);
      if (!map || std::find(maps.begin(), maps.end(), map) != maps.end()) continue;
      maps.push_back(map);
      const auto parameters = Parameters(map);
      if (parameters.size() != order.size()) return {};
      permute(builder, parameters);
    }
  }
  const auto steps = FindAll(launch->kernel, [](const Node& n) { return IsCallOf(n, {"program_id", "num_programs"}); });
  for (const Node& step : steps) {
    const Node axis = Argument(step, 0, "axis");
    const auto old = kernels::EvaluateInteger(axis);
    if (!old) return {};
    const auto at = std::find(order.begin(), order.end(), static_cast<size_t>(*old));
    if (at == order.end()) return {};
    const auto now = at - order.begin();
    if (now != *old) builder.Replace(axis, std::to_string(now));
  }
  if (const Node params = Keyword(launch->call, "compiler_params"); params.Is("call")) {
    const auto semantics = Elements(Keyword(params, "dimension_semantics"));
    if (semantics.size() == order.size()) permute(builder, semantics);
  }
  return {builder.Build("Move the reduction axis last, so that the visits of an output block follow each other")};
}

}  // namespace kernelwright::diagnose
