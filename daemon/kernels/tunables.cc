// Lists integer expressions with the place they stand in; see tunables.h.
#include "daemon/kernels/tunables.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "daemon/base/hash.h"
#include "daemon/kernels/literals.h"
#include "daemon/kernels/tree.h"

namespace kernelwright::kernels {
namespace {

std::string LastPart(std::string_view dotted) {
  const size_t dot = dotted.rfind('.');
  return std::string(dot == std::string_view::npos ? dotted : dotted.substr(dot + 1));
}

bool IsSequence(const Node& node) {
  return node.Is("tuple") || node.Is("list") || node.Is("expression_list") || node.Is("pattern_list") ||
         node.Is("tuple_pattern") || node.Is("list_pattern");
}

int ElementIndex(const Node& sequence, const Node& element) {
  const auto children = sequence.NamedChildren();
  for (size_t i = 0; i < children.size(); ++i) {
    if (children[i] == element) return static_cast<int>(i);
  }
  return -1;
}

// Arguments whose integers count axes, operands or arguments, not elements.
bool IsCountingArgument(std::string_view name) {
  static const std::set<std::string_view> kNames = {"axis",
                                                    "axes",
                                                    "dim",
                                                    "dims",
                                                    "dimension",
                                                    "num_scalar_prefetch",
                                                    "keepdims",
                                                    "static_argnums",
                                                    "donate_argnums",
                                                    "argnums",
                                                    "nondiff_argnums",
                                                    "dimension_numbers",
                                                    "input_output_aliases",
                                                    "collective_id",
                                                    "ndim",
                                                    "num_carry",
                                                    "stacklevel",
                                                    "indent",
                                                    "maxsize",
                                                    "random_seed",
                                                    "seed",
                                                    "shift",
                                                    "num_cores_or_threads",
                                                    "buffer_count",
                                                    "flops",
                                                    "transcendentals",
                                                    "bytes_accessed",
                                                    "vmem_limit_bytes"};
  return kNames.contains(name);
}

// Calls whose plain integer arguments are axis numbers or flags.
bool IsCountingCall(std::string_view callee) {
  static const std::set<std::string_view> kNames = {
      "program_id", "num_programs", "range", "Buffered", "shape", "swapaxes", "moveaxis",    "expand_dims",
      "squeeze",    "sum",          "max",   "min",      "mean",  "any",      "all",         "argmax",
      "PRNGKey",    "key",          "split", "print",    "finfo", "pow",      "integer_pow", "size"};
  return kNames.contains(callee);
}

bool IsMemorySpace(std::string_view callee) {
  return callee == "VMEM" || callee == "SMEM" || callee == "HBM" || callee == "ANY" || callee == "CMEM";
}

// Where a literal stands, found by climbing from it.
struct Place {
  SiteKind kind = SiteKind::kExpression;
  std::string name;
  std::string context;
  bool unlikely = false;  // counts axes, indexes, is in an index map, …
};

class Climber {
 public:
  Climber(const Node& site, std::string function) : function_(std::move(function)) { Climb(site); }
  Place place;

 private:
  std::string InFunction() const { return function_.empty() ? "" : " in `" + function_ + "`"; }
  std::string Element() const { return index_ < 0 ? "" : "[" + std::to_string(index_) + "]"; }

  void Climb(Node node) {
    for (Node parent = node.parent(); parent; node = parent, parent = node.parent()) {
      if (Step(node, parent)) return;
    }
  }

  // Looks at one ancestor; true when the place is settled.
  bool Step(const Node& node, const Node& parent) {
    if (IsSequence(parent)) {
      sequence_ = parent;
      if (index_ < 0) index_ = ElementIndex(parent, node);
      return false;
    }
    if (parent.Is("subscript")) {
      // `x.shape[1]`, `table[128]`: an index, or a type argument.
      if (!(parent.Field("value") == node)) return Settle(SiteKind::kExpression, "", "index", true);
      return false;
    }
    if (parent.Is("slice")) return Settle(SiteKind::kExpression, "", "slice bound", false);
    if (parent.Is("type") || parent.Is("interpolation")) return Settle(SiteKind::kExpression, "", "text", true);
    if (parent.Is("comparison_operator") || parent.Is("assert_statement") || parent.Is("if_statement")) {
      return Settle(SiteKind::kExpression, "", "condition", false);
    }
    if (parent.Is("binary_operator")) {
      const std::string_view op = parent.Field("operator").text();
      const bool right = parent.Field("right") == node;
      if (op == "**" && right) return Settle(SiteKind::kExpression, "", "exponent", true);
      if ((op == "+" || op == "-") && EvaluateInteger(node) == 1)
        return Settle(SiteKind::kExpression, "", "offset", true);
      return false;
    }
    if (parent.Is("lambda")) {
      if (parent.Field("body") == node) return Settle(SiteKind::kExpression, "", "body of a lambda", true);
      return false;
    }
    if (parent.Is("default_parameter") || parent.Is("typed_default_parameter")) {
      const std::string name(parent.Field("name").text());
      return Settle(SiteKind::kParameterDefault, name + Element(), "default of `" + name + "`" + InFunction(), false);
    }
    if (parent.Is("pair")) {
      std::string key(parent.Field("key").text());
      std::erase_if(key, [](char c) { return c == '"' || c == '\''; });
      return Settle(SiteKind::kArgument, key + Element(), "value of `" + key + "`" + InFunction(), false);
    }
    if (parent.Is("named_expression")) {
      const std::string name(parent.Field("name").text());
      return Settle(SiteKind::kAssignment, name, "`" + name + "`" + InFunction(), false);
    }
    if (parent.Is("assignment") && parent.Field("right") == node) return Assignment(node, parent);
    if (parent.Is("keyword_argument")) return Keyword(parent);
    if (parent.Is("argument_list")) return Argument(node, parent);
    if (parent.Is("return_statement")) {
      return Settle(SiteKind::kExpression, "", "returned by `" + function_ + "`", false);
    }
    return parent.Is("function_definition") || parent.Is("module");
  }

  bool Assignment(const Node& value, const Node& assignment) {
    const Node left = assignment.Field("left");
    std::string name(left.text());
    if (IsSequence(left)) {
      const auto targets = left.NamedChildren();
      // The elements of the value pair up with the targets.
      if (IsSequence(value) && index_ >= 0 && static_cast<size_t>(index_) < targets.size()) {
        name = targets[index_].text();
      }
    } else if (sequence_) {
      name += Element();
    }
    const bool local = !function_.empty();
    const bool grid = LastPart(name).starts_with("grid");
    const SiteKind kind = grid ? SiteKind::kGrid : local ? SiteKind::kAssignment : SiteKind::kModuleConstant;
    return Settle(kind, name, (local ? "`" : "constant `") + name + "`" + InFunction(), false);
  }

  bool Keyword(const Node& keyword) {
    const std::string name(keyword.Field("name").text());
    if (IsCountingArgument(name)) return Settle(SiteKind::kExpression, name, "argument `" + name + "=`", true);
    if (name == "grid") return Settle(SiteKind::kGrid, "", "grid" + Element() + InFunction(), false);
    if (name == "scratch_shapes") return Settle(SiteKind::kScratch, "", "scratch shape" + InFunction(), false);
    if (name == "block_shape" && LastPart(keyword.parent().parent().Field("function").text()) == "BlockSpec") {
      return Settle(SiteKind::kBlockShape, "", "element " + std::to_string(index_) + " of a block shape" + InFunction(),
                    false);
    }
    if (name == "out_shape" || name == "in_specs" || name == "out_specs" || name == "grid_spec") return false;
    return Settle(SiteKind::kArgument, name + Element(), "argument `" + name + "=`" + InFunction(), false);
  }

  bool Argument(const Node& node, const Node& arguments) {
    const Node call = arguments.parent();
    const std::string callee = LastPart(call.Field("function").text());
    if (callee == "BlockSpec") {
      return Settle(SiteKind::kBlockShape, "", "element " + std::to_string(index_) + " of a block shape" + InFunction(),
                    false);
    }
    if (IsMemorySpace(callee)) return Settle(SiteKind::kScratch, "", "scratch shape" + InFunction(), false);
    if (IsCountingCall(callee)) return Settle(SiteKind::kExpression, "", "argument of " + callee, true);
    if (callee == "cdiv" || callee == "min" || callee == "max" || callee == "int" || callee == "tuple" ||
        callee == "multiple_of" || callee == "list") {
      return false;  // arithmetic: what matters is where the result goes
    }
    if (callee == "ShapeDtypeStruct") return Settle(SiteKind::kExpression, "", "shape of a result", false);
    const int position = ElementIndex(arguments, node);
    return Settle(SiteKind::kArgument, "",
                  "argument " + std::to_string(position + 1) + " of `" + callee + "`" + InFunction(), false);
  }

  bool Settle(SiteKind kind, std::string name, std::string context, bool unlikely) {
    place = {kind, std::move(name), std::move(context), unlikely};
    return true;
  }

  std::string function_;
  Node sequence_;
  int index_ = -1;
};

bool NameSoundsLikeSize(std::string_view name) {
  std::string lower;
  for (const char c : name) lower += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const std::string_view part : {"block", "tile", "blk", "chunk", "rows", "cols", "size", "step"}) {
    if (lower.find(part) != std::string::npos) return true;
  }
  // bm, bn, bk, bq, b_kv, tm, …
  return lower.size() <= 4 && (lower.starts_with('b') || lower.starts_with('t'));
}

int Priority(const Place& place, int64_t value, bool entered) {
  if (place.unlikely) return 3;
  int priority = 1;
  switch (place.kind) {
    case SiteKind::kBlockShape:
    case SiteKind::kGrid:
    case SiteKind::kScratch:
      priority = 0;
      break;
    case SiteKind::kParameterDefault:
    case SiteKind::kModuleConstant:
    case SiteKind::kAssignment:
    case SiteKind::kArgument:
      priority = NameSoundsLikeSize(place.name) ? 0 : 1;
      break;
    case SiteKind::kExpression:
      priority = 2;
      break;
  }
  if (value < 8 && place.kind != SiteKind::kGrid) ++priority;
  if (!entered) ++priority;
  return std::min(priority, 3);
}

class Finder {
 public:
  void Search(const SourceFile& file, ByteRange range, bool entered) {
    Walk(file.tree().root(), [&](const Node& node) {
      if (node.end() <= range.begin || node.begin() >= range.end) return false;
      if (node.begin() < range.begin || node.end() > range.end) return true;
      if (node.Is("string") && node.NamedChildren().empty()) return false;
      const auto value = node.Is("integer") || node.Is("binary_operator") ? EvaluateInteger(node) : std::nullopt;
      if (!value) return true;
      // Only whole literal expressions are sites; a negated one is never a size.
      if (*value >= 1 && !node.parent().Is("unary_operator")) Add(file, node, *value, entered);
      return false;
    });
  }

  std::vector<TunableSite> Take() {
    std::stable_sort(sites_.begin(), sites_.end(), [](const TunableSite& a, const TunableSite& b) {
      return std::tie(a.priority, a.file, a.range.begin) < std::tie(b.priority, b.file, b.range.begin);
    });
    return std::move(sites_);
  }

 private:
  void Add(const SourceFile& file, const Node& node, int64_t value, bool entered) {
    if (!seen_.insert({file.path(), node.begin()}).second) return;
    auto [hash, is_new] = hashes_.try_emplace(file.path());
    if (is_new) hash->second = Sha256Hex(file.text());
    const FunctionInfo* around = file.EnclosingFunction(node.begin());
    TunableSite site;
    site.file = file.path();
    site.base_hash = hash->second;
    site.range = {node.begin(), node.end()};
    site.position = file.Position(node.begin());
    site.value = value;
    site.text = node.text();
    site.function = around == nullptr ? "" : around->qualified_name;
    Place place = Climber(node, site.function).place;
    site.priority = Priority(place, value, entered);
    site.kind = place.kind;
    site.name = std::move(place.name);
    site.context = place.context.empty() ? "literal" : std::move(place.context);
    sites_.push_back(std::move(site));
  }

  std::vector<TunableSite> sites_;
  std::set<std::pair<std::string, uint32_t>> seen_;
  std::map<std::string, std::string> hashes_;
};

}  // namespace

const char* SiteKindName(SiteKind kind) {
  switch (kind) {
    case SiteKind::kParameterDefault:
      return "parameter default";
    case SiteKind::kModuleConstant:
      return "module constant";
    case SiteKind::kAssignment:
      return "assignment";
    case SiteKind::kArgument:
      return "argument";
    case SiteKind::kBlockShape:
      return "block shape";
    case SiteKind::kGrid:
      return "grid";
    case SiteKind::kScratch:
      return "scratch shape";
    case SiteKind::kExpression:
      break;
  }
  return "expression";
}

std::vector<TunableSite> FindTunableSites(const Reached& reached) {
  Finder finder;
  for (const ReachedFunction& function : reached.functions) {
    finder.Search(*function.file, function.function->range_with_decorators, function.entered);
  }
  for (const ReachedConstant& constant : reached.constants) {
    finder.Search(*constant.file, constant.constant->value_range, true);
  }
  return finder.Take();
}

std::vector<TunableSite> FindTunableSites(const std::vector<UserFile>& files, const SourceFile& entry_file,
                                          const FunctionInfo& entry) {
  return FindTunableSites(FindReachable(files, entry_file, entry));
}

TextEdit IntegerEdit(const TunableSite& site, int64_t value) {
  return {site.file, site.range, FormatInteger(site.text, value), site.base_hash};
}

}  // namespace kernelwright::kernels
