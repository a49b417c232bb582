// See axes.h. Dimensions are joined by union-find; a dimension of size 1 joins nothing, because it may be broadcast.
#include "daemon/kernels/lift/axes.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "daemon/kernels/lift/expression.h"

namespace kernelwright::kernels::lift {
namespace {

std::string DimsText(const TensorType& type) {
  std::string text = type.dtype + "[";
  for (size_t i = 0; i < type.dims.size(); ++i) text += (i > 0 ? "," : "") + std::to_string(type.dims[i]);
  return text + "]";
}

// The four lists of `dimension_numbers`, printed as (((1),(0)),((),())).
struct DotNumbers {
  std::vector<int64_t> lists[4];
};
DotNumbers ReadDotNumbers(const Node& node) {
  DotNumbers numbers;
  const std::string text = Text(node, "dimension_numbers.structure");
  int list = -1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' && i + 1 < text.size() && text[i + 1] != '(') ++list;
    if (std::isdigit(static_cast<unsigned char>(text[i])) != 0 && list >= 0 && list < 4) {
      size_t end = i;
      while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
      numbers.lists[list].push_back(std::stoll(text.substr(i, end - i)));
      i = end - 1;
    }
  }
  return numbers;
}

class Analyzer {
 public:
  explicit Analyzer(const FlatProgram& flat) : flat_(flat) {}

  AxesResult Run() {
    size_t count = 0;
    for (const Node& node : flat_.nodes) {
      first_.push_back(count);
      count += node.type.dims.size();
    }
    parent_.resize(count);
    std::iota(parent_.begin(), parent_.end(), size_t{0});
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      if (!Join(static_cast<int>(i))) return obstacle_;
    }
    if (!Weights() || !Classify() || !Layouts()) return obstacle_;
    return std::move(axes_);
  }

 private:
  const Node& node(int i) const { return flat_.nodes[static_cast<size_t>(i)]; }
  bool Refuse(std::string reason, int at) {
    obstacle_ = {std::move(reason), node(at).spans};
    return false;
  }

  size_t Find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  size_t Id(int at, size_t dim) const { return first_[static_cast<size_t>(at)] + dim; }
  int64_t Size(int at, size_t dim) const { return node(at).type.dims[dim]; }
  void Unite(int a, size_t dim_a, int b, size_t dim_b) {
    if (Size(a, dim_a) != 1 && Size(b, dim_b) != 1) parent_[Find(Id(a, dim_a))] = Find(Id(b, dim_b));
  }

  bool Join(int at) {
    const Node& op = node(at);
    const std::string& name = op.op;
    const size_t rank = op.type.dims.size();
    if (name == "broadcast_in_dim") {
      const auto dims = Integers(op, "broadcast_dimensions");
      for (size_t d = 0; d < dims.size(); ++d) Unite(op.args[0].node, d, at, static_cast<size_t>(dims[d]));
      return true;
    }
    if (name == "reshape" || name == "squeeze" || name == "expand_dims") return JoinReshape(at);
    if (name == "transpose") {
      const auto permutation = Integers(op, "permutation");
      for (size_t d = 0; d < permutation.size(); ++d)
        Unite(op.args[0].node, static_cast<size_t>(permutation[d]), at, d);
      return true;
    }
    if (IsReduction(name)) {
      const auto axes = Integers(op, "axes");
      const int from = op.args[0].node;
      size_t to = 0;
      for (size_t d = 0; d < node(from).type.dims.size(); ++d) {
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(d)) == axes.end()) Unite(from, d, at, to++);
      }
      return true;
    }
    if (name == "dot_general") return JoinDot(at);
    if (!IsElementwise(name)) {
      return Refuse(name + " is none of the operations that a lifted kernel computes", at);
    }
    for (const Arg& arg : op.args) {
      if (arg.is_number() || node(arg.node).type.dims.empty()) continue;
      if (node(arg.node).type.dims.size() != rank) return Refuse(name + " takes arrays of different ranks", at);
      for (size_t d = 0; d < rank; ++d) Unite(arg.node, d, at, d);
    }
    return true;
  }

  // Dimensions of size 1 come and go; leading dimensions may be folded into one, since rows are rows.
  bool JoinReshape(int at) {
    const int from = node(at).args[0].node;
    const auto wide = [&](int which) {
      std::vector<size_t> dims;
      for (size_t d = 0; d < node(which).type.dims.size(); ++d) {
        if (Size(which, d) != 1) dims.push_back(d);
      }
      return dims;
    };
    std::vector<size_t> a = wide(from);
    std::vector<size_t> b = wide(at);
    while (!a.empty() && !b.empty() && Size(from, a.back()) == Size(at, b.back())) {
      Unite(from, a.back(), at, b.back());
      a.pop_back();
      b.pop_back();
    }
    if (a.empty() && b.empty()) return true;
    if (a.size() == wide(from).size()) return Refuse("a reshape moves the last axis", at);
    while (!a.empty() && !b.empty() && Size(from, a.front()) == Size(at, b.front())) {
      Unite(from, a.front(), at, b.front());
      a.erase(a.begin());
      b.erase(b.begin());
    }
    for (size_t d : a) {
      if (!b.empty()) Unite(from, d, at, b.front());
      folded_.push_back(Id(from, d));
    }
    for (size_t d : b) {
      if (!a.empty()) Unite(from, a.front(), at, d);
      folded_.push_back(Id(at, d));
    }
    return true;
  }

  bool JoinDot(int at) {
    const Node& dot = node(at);
    const DotNumbers numbers = ReadDotNumbers(dot);
    if (dot.args[0].is_number() || dot.args[1].is_number()) return Refuse("a product with a constant", at);
    const int left = dot.args[0].node;
    const int right = dot.args[1].node;
    const size_t rank = node(left).type.dims.size();
    if (!numbers.lists[2].empty()) return Refuse("a product with a batch dimension on both sides", at);
    if (numbers.lists[0].size() != 1 || numbers.lists[1].size() != 1 || rank < 2 ||
        numbers.lists[0][0] != static_cast<int64_t>(rank) - 1 || node(right).type.dims.size() != 2) {
      return Refuse("a product that is not rows times a matrix: " + DimsText(node(left).type) + " and " +
                        DimsText(node(right).type),
                    at);
    }
    const auto k = static_cast<size_t>(numbers.lists[1][0]);
    Unite(left, rank - 1, right, k);
    for (size_t d = 0; d + 1 < rank; ++d) Unite(left, d, at, d);
    Unite(right, 1 - k, at, rank - 1);
    return true;
  }

  bool Weights() {
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      if (flat_.nodes[i].op != "dot_general") continue;
      int right = flat_.nodes[i].args[1].node;
      while (true) {
        axes_.weights.insert(right);
        const Node& view = node(right);
        if (view.op == "input") break;
        const bool seen_through = view.op == "transpose" || view.op == "copy" || view.op == "stop_gradient" ||
                                  (view.op == "convert_element_type" && IsFloat(view.type.dtype) &&
                                   !view.args[0].is_number() && IsFloat(node(view.args[0].node).type.dtype));
        if (!seen_through || view.args[0].is_number()) {
          return Refuse("the right-hand side of a product is computed, by " + view.op, static_cast<int>(i));
        }
        right = view.args[0].node;
      }
    }
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      const Node& user = flat_.nodes[i];
      for (size_t a = 0; a < user.args.size(); ++a) {
        if (user.args[a].is_number() || !axes_.weights.contains(user.args[a].node)) continue;
        const bool as_weight = (user.op == "dot_general" && a == 1) || axes_.weights.contains(static_cast<int>(i));
        if (!as_weight) return Refuse("a weight is used beside its product, by " + user.op, static_cast<int>(i));
      }
    }
    return true;
  }

  int Root(int at, size_t dim) { return Size(at, dim) == 1 ? kUnit : static_cast<int>(Find(Id(at, dim))); }

  bool Classify() {
    axes_.dims.resize(flat_.nodes.size());
    for (size_t i = 0; i < flat_.nodes.size(); ++i) {
      for (size_t d = 0; d < flat_.nodes[i].type.dims.size(); ++d) {
        axes_.dims[i].push_back(Root(static_cast<int>(i), d));
      }
    }
    const auto mark = [&](const std::vector<int>& dims) {
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] != kUnit) (d + 1 == dims.size() ? axes_.columns : axes_.rows).insert(dims[d]);
      }
    };
    int largest = -1;
    double elements = 0;
    bool product = false;
    for (size_t i = 0; i < flat_.nodes.size(); ++i) {
      if (axes_.weights.contains(static_cast<int>(i))) continue;
      const Node& each = flat_.nodes[i];
      double count = 1;
      for (int64_t size : each.type.dims) count *= static_cast<double>(size);
      if (each.type.dims.size() >= 2 && count > elements) {
        elements = count;
        largest = static_cast<int>(i);
      }
      if (each.op != "dot_general") continue;
      product = true;
      mark(axes_.dims[i]);
      mark(axes_.dims[static_cast<size_t>(each.args[0].node)]);
    }
    if (largest < 0) {
      obstacle_ = {"it computes with no array of two dimensions or more", {}};
      return false;
    }
    if (!product) mark(axes_.dims[static_cast<size_t>(largest)]);
    axes_.row_count = 1;
    const Node& whole = node(largest);
    for (size_t d = 0; d + 1 < whole.type.dims.size(); ++d) axes_.row_count *= whole.type.dims[d];
    if (axes_.row_count == 1) return Refuse("there is a single row", largest);
    for (size_t id : folded_) {
      if (axes_.columns.contains(static_cast<int>(Find(id)))) return Refuse("a reshape folds columns", largest);
    }
    for (int axis : axes_.columns) {
      if (axes_.rows.contains(axis)) return Refuse("rows and columns are the same axis: a transpose", largest);
    }
    return true;
  }

  bool Layouts() {
    axes_.layout.resize(flat_.nodes.size());
    for (size_t i = 0; i < flat_.nodes.size(); ++i) {
      const int at = static_cast<int>(i);
      const std::vector<int>& dims = axes_.dims[i];
      if (axes_.weights.contains(at)) {
        for (size_t d = 0; d < dims.size(); ++d) axes_.size[dims[d]] = Size(at, d);
        continue;
      }
      Axes::Layout& layout = axes_.layout[i];
      int64_t rows = 1;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] == kUnit) continue;
        if (layout.column != kUnit) return Refuse("an axis stands behind the columns: " + DimsText(node(at).type), at);
        if (axes_.rows.contains(dims[d])) {
          layout.rows = true;
          rows *= Size(at, d);
        } else if (axes_.columns.contains(dims[d])) {
          layout.column = dims[d];
          axes_.size[dims[d]] = Size(at, d);
        } else {
          return Refuse("an axis of " + DimsText(node(at).type) + " is neither rows nor columns", at);
        }
      }
      if (layout.rows && rows != axes_.row_count) {
        return Refuse("a value is repeated along some of the leading axes: " + DimsText(node(at).type), at);
      }
    }
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      const Node& each = flat_.nodes[i];
      if (!IsReduction(each.op)) continue;
      const auto from = static_cast<size_t>(each.args[0].node);
      bool columns = false;
      for (int64_t axis : Integers(each, "axes")) {
        const int reduced = axes_.dims[from][static_cast<size_t>(axis)];
        if (reduced != kUnit && !axes_.columns.contains(reduced)) {
          return Refuse(each.op + " over rows: blocks of rows would depend on each other", static_cast<int>(i));
        }
        columns = columns || reduced != kUnit;
      }
      if (!columns) return Refuse(each.op + " over an axis of size 1", static_cast<int>(i));
    }
    return true;
  }

  const FlatProgram& flat_;
  std::vector<size_t> first_;
  std::vector<size_t> parent_;
  std::vector<size_t> folded_;
  Axes axes_;
  Obstacle obstacle_;
};

}  // namespace

AxesResult AnalyzeAxes(const FlatProgram& flat) { return Analyzer(flat).Run(); }

std::variant<Product, Obstacle> ReadProduct(const FlatProgram& flat, const Axes& axes, int at) {
  const Node& dot = flat.nodes[static_cast<size_t>(at)];
  Product product;
  product.node = at;
  product.left = dot.args[0].node;
  int right = dot.args[1].node;
  product.left_dtype = flat.nodes[static_cast<size_t>(product.left)].type.dtype;
  product.right_dtype = flat.nodes[static_cast<size_t>(right)].type.dtype;
  if (!IsFloat(product.left_dtype) || !IsFloat(product.right_dtype)) {
    return Obstacle{"a product of " + product.left_dtype + " and " + product.right_dtype, dot.spans};
  }
  product.transposed = ReadDotNumbers(dot).lists[1][0] == 1;
  while (flat.nodes[static_cast<size_t>(right)].op != "input") {
    const Node& view = flat.nodes[static_cast<size_t>(right)];
    if (view.op == "transpose" && Integers(view, "permutation") == std::vector<int64_t>{1, 0}) {
      product.transposed = !product.transposed;
    }
    right = view.args[0].node;
  }
  product.weight = right;
  product.k = axes.dims[static_cast<size_t>(product.left)].back();
  product.n = axes.dims[static_cast<size_t>(at)].back();
  if (product.k == kUnit || product.n == kUnit) return Obstacle{"a product with a vector", dot.spans};
  return product;
}

bool IsAlias(const FlatProgram& flat, int at) {
  const Node& node = flat.nodes[static_cast<size_t>(at)];
  static const std::set<std::string> views = {"broadcast_in_dim", "reshape",      "squeeze", "expand_dims", "copy",
                                              "transpose",        "stop_gradient"};
  if (views.contains(node.op)) return true;
  return node.op == "convert_element_type" && IsFloat(node.type.dtype) &&
         IsFloat(flat.nodes[static_cast<size_t>(node.args[0].node)].type.dtype);
}

Arg Behind(const FlatProgram& flat, Arg arg) {
  while (!arg.is_number() && IsAlias(flat, arg.node)) arg = flat.nodes[static_cast<size_t>(arg.node)].args[0];
  return arg;
}

bool IsFloat(const std::string& dtype) { return dtype == "float32" || dtype == "bfloat16"; }

bool IsReduction(const std::string& op) { return op == "reduce_sum" || op == "reduce_max" || op == "reduce_min"; }

}  // namespace kernelwright::kernels::lift
