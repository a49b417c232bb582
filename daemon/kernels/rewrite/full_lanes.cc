// Rotary embeddings and their like compute the lower and the upper half of the lanes apart: half-empty registers, twice
// as many instructions, masked stores. Two stores whose expressions are the same but for the halves become one over all
// lanes: x * c + rotated * s, where `rotated` has the halves exchanged and the sign in it.
#include <algorithm>

#include "daemon/kernels/rewrite/product.h"
#include "daemon/kernels/rewrite/rule.h"

namespace kernelwright::rewrite {
namespace {

// `ref[:, :half]` or `ref[:, half:]`.
struct HalfSlice {
  Node base;  // what is sliced
  std::string half;
  bool upper = false;
};

std::optional<HalfSlice> HalfOf(const Node& node) {
  if (!node.Is("subscript")) return std::nullopt;
  const auto children = node.NamedChildren();
  if (children.size() < 2 || !children.back().Is("slice")) return std::nullopt;
  for (size_t i = 1; i + 1 < children.size(); ++i) {
    if (children[i].text() != ":" && children[i].text() != "...") return std::nullopt;
  }
  const std::string_view text = children.back().text();
  const auto bounds = children.back().NamedChildren();
  if (bounds.size() != 1 || std::count(text.begin(), text.end(), ':') != 1) return std::nullopt;
  return HalfSlice{children.front(), std::string(bounds.front().text()), text.ends_with(":")};
}

struct Term {
  bool minus = false;
  std::vector<Node> factors;
};

// A sum of products; false when it is something else.
bool Flatten(Node node, bool minus, std::vector<Term>& terms) {
  node = diagnose::StripParentheses(node);
  if (node.Is("unary_operator") && node.text().starts_with("-")) return Flatten(node.Field("argument"), !minus, terms);
  if (node.Is("binary_operator")) {
    const std::string_view sign = node.Field("operator").text();
    if (sign == "+" || sign == "-") {
      return Flatten(node.Field("left"), minus, terms) && Flatten(node.Field("right"), minus != (sign == "-"), terms);
    }
    if (sign == "*") {
      terms.push_back(
          {minus, {diagnose::StripParentheses(node.Field("left")), diagnose::StripParentheses(node.Field("right"))}});
      return true;
    }
    return false;
  }
  terms.push_back({minus, {node}});
  return true;
}

// One factor of both expressions as a value over all lanes.
struct Joined {
  enum class Kind { kFull, kExchanged, kSame, kTwice };
  Kind kind = Kind::kSame;
  std::string text;
  Node lower;  // as written in the first and the second expression
  Node upper;
};

std::optional<Joined> Join(const KernelView& view, Rewriter& builder, const Node& a, const Node& b,
                           const std::string& half) {
  const auto described = [&](const Node& leaf, std::string& dtype) -> std::optional<HalfSlice> {
    Node value = leaf;
    if (value.Is("identifier")) value = diagnose::StripParentheses(view.source.Resolve(value));
    if (const Node base = CastBase(value, &dtype)) value = diagnose::StripParentheses(base);
    return HalfOf(value);
  };
  std::string a_dtype;
  std::string b_dtype;
  const auto first = described(a, a_dtype);
  const auto second = described(b, b_dtype);
  if (a.text() == b.text()) {
    Joined joined{Joined::Kind::kSame, std::string(a.text()), a, b};
    if (IsConstantNumber(view, a)) return joined;
    // A column is the same for all lanes.
    Node value = a.Is("identifier") ? view.source.Resolve(a) : a;
    const Ref* ref = value ? view.Find(diagnose::SubscriptedName(value)) : nullptr;
    const bool column = ref != nullptr && !ref->type.dims.empty() && ref->type.dims.back() == 1;
    if (!column) {
      joined.kind = Joined::Kind::kTwice;
      joined.text = builder.Jnp() + ".concatenate([" + joined.text + ", " + joined.text + "], axis=-1)";
    }
    return joined;
  }
  if (!first || !second || first->half != half || second->half != half || first->upper == second->upper ||
      first->base.text() != second->base.text() || a_dtype != b_dtype) {
    return std::nullopt;
  }
  Joined joined{first->upper ? Joined::Kind::kExchanged : Joined::Kind::kFull, "", a, b};
  joined.text = std::string(first->base.text());
  if (first->base.Is("identifier") && view.Find(joined.text) != nullptr) joined.text += "[...]";
  if (!a_dtype.empty()) joined.text += ".astype(" + a_dtype + ")";
  return joined;
}

// The store of one half, as statement.
struct HalfStore {
  Node statement;
  Node target;
  Node value;
  HalfSlice slice;
};

std::optional<HalfStore> HalfStoreOf(const Node& statement) {
  const auto parts = statement.NamedChildren();
  if (!statement.Is("expression_statement") || parts.size() != 1 || !parts.front().Is("assignment")) {
    return std::nullopt;
  }
  const auto slice = HalfOf(parts.front().Field("left"));
  if (!slice || !slice->base.Is("identifier")) return std::nullopt;
  return HalfStore{statement, parts.front().Field("left"), parts.front().Field("right"), *slice};
}

// Terms over all lanes, in the order of the first expression; empty when the two do not match.
std::vector<std::pair<bool, std::vector<Joined>>> Match(const KernelView& view, Rewriter& builder,
                                                        const std::vector<Term>& first, const std::vector<Term>& second,
                                                        const std::string& half) {
  std::vector<std::pair<bool, std::vector<Joined>>> joined;
  for (size_t i = 0; i < first.size(); ++i) {
    const Term& a = first[i];
    const Term& b = second[i];
    if (a.factors.size() != b.factors.size()) return {};
    std::vector<Joined> factors;
    for (const bool swapped : {false, true}) {
      factors.clear();
      for (size_t f = 0; f < a.factors.size(); ++f) {
        const auto one = Join(view, builder, a.factors[f], b.factors[swapped ? a.factors.size() - 1 - f : f], half);
        if (one) factors.push_back(*one);
      }
      if (factors.size() == a.factors.size()) break;
    }
    if (factors.size() != a.factors.size()) return {};
    // Exchanged halves are written as one value that carries the signs of both terms.
    bool minus = a.minus;
    bool carried = false;
    for (Joined& factor : factors) {
      if (factor.kind != Joined::Kind::kExchanged) continue;
      const bool differ = a.minus != b.minus && !carried;
      if (differ) minus = false;
      carried = carried || differ;
      factor.text = builder.Jnp() + ".concatenate([" + (differ && a.minus ? "-" : "") +
                    diagnose::AsPrimary(factor.lower) + ", " + (differ && b.minus ? "-" : "") +
                    diagnose::AsPrimary(factor.upper) + "], axis=-1)";
    }
    if (a.minus != b.minus && !carried) return {};
    joined.emplace_back(minus, std::move(factors));
  }
  return joined;
}

}  // namespace

void FullLanes(const KernelView& view, Answer& answer) {
  for (const Node& block : diagnose::FindAll(view.kernel(), [](const Node& node) { return node.Is("block"); })) {
    const auto statements = Statements(block);
    for (size_t i = 0; i + 1 < statements.size(); ++i) {
      const auto lower = HalfStoreOf(statements[i]);
      const auto upper = HalfStoreOf(statements[i + 1]);
      if (!lower || !upper || lower->slice.upper || !upper->slice.upper ||
          lower->slice.base.text() != upper->slice.base.text() || lower->slice.half != upper->slice.half) {
        continue;
      }
      const Ref* output = view.Find(lower->slice.base.text());
      const auto type = TypeOf(view, lower->value);
      if (output == nullptr || output->type.dims.empty() || !type || type->dims.empty() ||
          type->dims.back() * 2 != output->type.dims.back()) {
        answer.Refuse("the two stores are not known to be halves of the lanes", lower->statement);
        continue;
      }
      if (type->dims.back() % 128 == 0) {
        answer.Refuse("each half fills whole registers of 128 lanes already", lower->statement);
        continue;
      }
      // A cast around both expressions stays around the joined one.
      std::string lower_dtype;
      std::string upper_dtype;
      Node lower_value = lower->value;
      Node upper_value = upper->value;
      if (const Node base = CastBase(lower_value, &lower_dtype)) lower_value = base;
      if (const Node base = CastBase(upper_value, &upper_dtype)) upper_value = base;
      std::vector<Term> first;
      std::vector<Term> second;
      if (lower_dtype != upper_dtype || !Flatten(lower_value, false, first) || !Flatten(upper_value, false, second) ||
          first.size() != second.size() || first.size() > 2 || first.front().minus) {
        answer.Refuse("the halves are not sums of at most two products", lower->statement);
        continue;
      }
      Rewriter builder(view);
      auto joined = Match(view, builder, first, second, lower->slice.half);
      if (joined.empty() && second.size() == 2) {
        std::swap(second[0], second[1]);  // a sum of two may be written in either order
        joined = Match(view, builder, first, second, lower->slice.half);
      }
      if (joined.empty()) {
        answer.Refuse("the expressions of the two halves differ in more than the halves", lower->statement);
        continue;
      }
      std::string before;
      std::string sum;
      std::set<std::string> taken;
      for (auto& [minus, factors] : joined) {
        std::string term;
        for (Joined& factor : factors) {
          if (factor.kind == Joined::Kind::kExchanged || factor.kind == Joined::Kind::kTwice) {
            const bool named = factor.kind == Joined::Kind::kTwice && factor.lower.Is("identifier");
            const std::string base = factor.kind == Joined::Kind::kExchanged ? "rotated"
                                     : named ? std::string(factor.lower.text()) + "_full"
                                             : "full";
            const std::string name = FreshName(view, base, taken);
            taken.insert(name);
            before += name + " = " + factor.text + "\n";
            factor.text = name;
          }
          term += (term.empty() ? "" : " * ") + factor.text;
        }
        sum += sum.empty() ? (minus ? "-" : "") + term : (minus ? " - " : " + ") + term;
      }
      if (!lower_dtype.empty()) sum = "(" + sum + ").astype(" + lower_dtype + ")";
      if (!before.empty()) builder.InsertBefore(lower->statement, before.substr(0, before.size() - 1));
      builder.Replace(lower->statement, output->name + "[...] = " + sum);
      builder.RemoveStatement(upper->statement);
      answer.Propose(lower->statement,
                     {"compute both halves of the lanes at once",
                      "Each half fills " + std::to_string(type->dims.back()) +
                          " of 128 lanes of its registers and is stored under a mask; together they fill all.",
                      "graph: two stores of " + ShapeText(type->dims) + " into " + output->name + " of " +
                          ShapeText(output->type.dims),
                      1.15, kernels::Exactness::kBitEqual},
                     builder.edits());
    }
  }
}

}  // namespace kernelwright::rewrite
