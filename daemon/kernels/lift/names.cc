// See names.h.
#include "daemon/kernels/lift/names.h"

#include <cctype>
#include <optional>
#include <tuple>

#include "daemon/kernels/lift/axes.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::kernels::lift {
namespace {

struct Assignment {
  int first = 0;  // lines from 1
  int last = 0;
  std::string name;
};

std::vector<Assignment> FindAssignments(const SourceFile& file) {
  std::vector<Assignment> found;
  Walk(file.tree().root(), [&](const kernels::Node& node) {
    if (node.Is("assignment") && node.Field("left").Is("identifier")) {
      found.push_back({node.row() + 1, node.end_row() + 1, std::string(node.Field("left").text())});
    }
    return true;
  });
  return found;
}

std::string RoleName(const Node& node, bool is_mean) {
  static const std::map<std::string, std::string> names = {
      {"reduce_sum", "total"},    {"reduce_max", "top"}, {"reduce_min", "low"}, {"rsqrt", "scale"}, {"exp", "e"},
      {"dot_general", "product"}, {"sub", "shifted"},    {"add", "added"},      {"mul", "scaled"},  {"div", "quotient"},
      {"square", "squared"},      {"logistic", "gate"},  {"tanh", "t"},         {"sqrt", "root"}};
  if (is_mean) return "mean";
  const auto found = names.find(node.op);
  return found != names.end() ? found->second : "v";
}

}  // namespace

std::map<int, std::string> NameValues(const FlatProgram& flat, const std::set<int>& means,
                                      const std::vector<std::unique_ptr<SourceFile>>& files) {
  std::map<std::string, std::vector<Assignment>> assignments;
  for (const auto& file : files) assignments[file->path()] = FindAssignments(*file);
  // The last operation of a statement is what the statement assigns.
  std::map<std::tuple<std::string, int, int>, std::pair<int, std::string>> assigned;
  for (size_t i = flat.inputs; i < flat.nodes.size(); ++i) {
    for (const SourceSpan& span : flat.nodes[i].spans) {
      const auto file = assignments.find(span.file);
      if (file == assignments.end()) continue;
      const Assignment* best = nullptr;
      for (const Assignment& each : file->second) {
        if (each.first > span.line || each.last < span.line) continue;
        if (best == nullptr || each.last - each.first < best->last - best->first) best = &each;
      }
      // The frame of a call is no part of the called body's statements.
      if (best != nullptr) assigned[{span.file, best->first, flat.nodes[i].call}] = {static_cast<int>(i), best->name};
      break;
    }
  }
  std::map<int, std::string> names;
  for (size_t i = 0; i < flat.nodes.size(); ++i) {
    const Node& node = flat.nodes[i];
    names[static_cast<int>(i)] =
        node.op == "input" ? Identifier(node.name) : RoleName(node, means.contains(static_cast<int>(i)));
  }
  for (const auto& [place, value] : assigned) {
    const Arg behind = Behind(flat, {value.first});
    if (!behind.is_number() && flat.nodes[static_cast<size_t>(behind.node)].op != "input") {
      names[behind.node] = value.second;
    }
  }
  return names;
}

std::string NameSet::Take(const std::string& wanted) {
  std::string name = wanted;
  for (int i = 2; !taken_.insert(name).second; ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(wanted.back())) != 0;
    name = wanted + (digit ? "_" : "") + std::to_string(i);
  }
  return name;
}

std::string Identifier(const std::string& path) {
  std::string name;
  for (char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0) name = "a" + name;
  return name;
}

}  // namespace kernelwright::kernels::lift
