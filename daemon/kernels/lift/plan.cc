// See plan.h. Stages are worked through from the last to the first: what a stage needs decides what earlier ones keep.
#include "daemon/kernels/lift/plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace kernelwright::kernels::lift {
namespace {

constexpr size_t kMaxStages = 12;

class Planner {
 public:
  Planner(const FlatProgram& flat, const Axes& axes, const PlanOptions& options)
      : flat_(flat), axes_(axes), options_(options) {}

  PlanResult Run() {
    if (!GroupProducts()) return obstacle_;
    AssignOwners();
    std::set<int> wanted;
    for (const Arg& output : flat_.outputs) {
      const Arg behind = Behind(flat_, output);
      if (behind.is_number() || node(behind.node).op == "input") {
        return Obstacle{"it returns one of its inputs or a constant", {}};
      }
      wanted.insert(behind.node);
    }
    for (int each : wanted) Keep(each);
    for (int stage = static_cast<int>(groups_.size()) - 1; stage >= -1; --stage) {
      if (!RowStage(stage) || (stage >= 0 && !ProductStage(stage))) return obstacle_;
    }
    std::reverse(plan_.stages.begin(), plan_.stages.end());
    if (plan_.stages.size() > kMaxStages) {
      return Obstacle{"it would take " + std::to_string(plan_.stages.size()) + " kernels", {}};
    }
    return std::move(plan_);
  }

 private:
  const Node& node(int i) const { return flat_.nodes[static_cast<size_t>(i)]; }
  std::vector<int> Operands(int at) const {
    std::vector<int> operands;
    for (const Arg& arg : node(at).args) {
      const Arg behind = Behind(flat_, arg);
      if (!behind.is_number()) operands.push_back(behind.node);
    }
    return operands;
  }

  // Products of the same rows whose results meet before the next product: a gate and what it gates.
  bool GroupProducts() {
    std::vector<Product> products;
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      if (flat_.nodes[i].op != "dot_general") continue;
      auto product = ReadProduct(flat_, axes_, static_cast<int>(i));
      if (const auto* obstacle = std::get_if<Obstacle>(&product)) {
        obstacle_ = *obstacle;
        return false;
      }
      products.push_back(std::get<Product>(std::move(product)));
    }
    std::vector<std::set<int>> reaching(flat_.nodes.size());  // products behind a node, not through another product
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      if (flat_.nodes[i].op == "dot_general") {
        reaching[i] = {static_cast<int>(i)};
        continue;
      }
      for (const Arg& arg : flat_.nodes[i].args) {
        if (!arg.is_number()) {
          reaching[i].insert(reaching[static_cast<size_t>(arg.node)].begin(),
                             reaching[static_cast<size_t>(arg.node)].end());
        }
      }
    }
    const auto meet = [&](int a, int b) {
      return std::any_of(reaching.begin(), reaching.end(),
                         [&](const std::set<int>& each) { return each.contains(a) && each.contains(b); });
    };
    for (const Product& product : products) {
      const Arg left = Behind(flat_, {product.left});
      auto joined = std::find_if(groups_.begin(), groups_.end(), [&](const std::vector<Product>& group) {
        const Product& first = group.front();
        return Behind(flat_, {first.left}) == left && first.left_dtype == product.left_dtype && first.k == product.k &&
               first.n == product.n && meet(first.node, product.node);
      });
      if (joined == groups_.end()) {
        groups_.push_back({product});
        group_of_[product.node] = static_cast<int>(groups_.size()) - 1;
      } else {
        joined->push_back(product);
        group_of_[product.node] = static_cast<int>(joined - groups_.begin());
      }
    }
    return true;
  }

  void AssignOwners() {
    const size_t count = flat_.nodes.size();
    stage_.assign(count, -1);
    owner_.assign(count, -1);
    reduced_.assign(count, false);
    reduces_.assign(count, false);
    for (size_t i = flat_.inputs; i < count; ++i) {
      const int at = static_cast<int>(i);
      if (axes_.weights.contains(at)) continue;
      if (const auto group = group_of_.find(at); group != group_of_.end()) {
        stage_[i] = owner_[i] = group->second;
        continue;
      }
      for (int operand : Operands(at)) {
        stage_[i] = std::max(stage_[i], stage_[static_cast<size_t>(operand)]);
        reduces_[i] = reduces_[i] || reduces_[static_cast<size_t>(operand)];
      }
      reduces_[i] = reduces_[i] || IsReduction(node(at).op);
      reduced_[i] = IsReduction(node(at).op) && stage_[i] >= 0;
      for (int operand : Operands(at)) {
        reduced_[i] = reduced_[i] ||
                      (stage_[static_cast<size_t>(operand)] == stage_[i] && reduced_[static_cast<size_t>(operand)]);
      }
      if (stage_[i] < 0) continue;
      const bool last = stage_[i] == static_cast<int>(groups_.size()) - 1;
      if (!reduced_[i]) {
        owner_[i] = stage_[i];
      } else if (last && options_.fuse_rows) {
        owner_[i] = stage_[i];
        whole_columns_ = true;
        plan_.fused_rows = true;
      }
    }
  }

  // Makes a value the result of a kernel: of its owner, or of a kernel over rows after the stage that it depends on.
  void Keep(int at) {
    const size_t i = static_cast<size_t>(at);
    if (owner_[i] >= 0) {
      kept_[owner_[i]].insert(at);
    } else {
      row_kept_[stage_[i]].insert(at);
      in_row_kernel_.insert(at);
    }
  }

  bool IsKeptOutside(int at, int stage) const {
    const size_t i = static_cast<size_t>(at);
    return (owner_[i] >= 0 && owner_[i] != stage) || (owner_[i] < 0 && in_row_kernel_.contains(at));
  }

  // Kernel over whole rows for what is kept after `stage` and belongs to no product.
  bool RowStage(int stage) {
    const auto found = row_kept_.find(stage);
    if (found == row_kept_.end()) return true;
    Stage row;
    row.outputs.assign(found->second.begin(), found->second.end());
    std::set<int> seen;
    std::vector<int> pending = row.outputs;
    while (!pending.empty()) {
      const int at = pending.back();
      pending.pop_back();
      if (!seen.insert(at).second) continue;
      const bool output = std::find(row.outputs.begin(), row.outputs.end(), at) != row.outputs.end();
      if (node(at).op == "input" || (!output && IsKeptOutside(at, -2))) {
        row.sources.push_back({at, false});
        if (node(at).op != "input") Keep(at);
        continue;
      }
      for (int operand : Operands(at)) pending.push_back(operand);
    }
    SortSources(row);
    plan_.stages.push_back(std::move(row));
    return true;
  }

  bool ProductStage(int stage) {
    Stage made;
    made.products = groups_[static_cast<size_t>(stage)];
    made.whole_columns = whole_columns_ && stage == static_cast<int>(groups_.size()) - 1;
    const auto kept = kept_.find(stage);
    if (kept == kept_.end()) return true;  // nobody needs it
    made.outputs.assign(kept->second.begin(), kept->second.end());

    std::set<int> seen;
    std::vector<int> pending = made.outputs;
    while (!pending.empty()) {
      const int at = pending.back();
      pending.pop_back();
      const auto group = group_of_.find(at);
      if (!seen.insert(at).second || (group != group_of_.end() && group->second == stage)) continue;
      if (node(at).op == "input" || IsKeptOutside(at, stage)) {
        AddSource(made, at, true);
        continue;
      }
      const bool outside = owner_[static_cast<size_t>(at)] != stage;
      if (outside && reduces_[static_cast<size_t>(at)]) {
        // A block of the result's columns cannot compute it: it gets a kernel of its own, before this one.
        if (stage_[static_cast<size_t>(at)] >= stage) {
          obstacle_ = {"a reduction over the columns of a product is used beside another product of the same rows",
                       node(at).spans};
          return false;
        }
        AddSource(made, at, true);
        continue;
      }
      for (int operand : Operands(at)) pending.push_back(operand);
    }

    const Arg left = Behind(flat_, {made.products.front().left});
    if (left.is_number()) {
      obstacle_ = {"a product with a constant", node(made.products.front().node).spans};
      return false;
    }
    seen.clear();
    pending = {left.node};
    while (!pending.empty()) {
      const int at = pending.back();
      pending.pop_back();
      if (!seen.insert(at).second) continue;
      if (node(at).op == "input" || IsKeptOutside(at, stage)) {
        AddSource(made, at, false);
        continue;
      }
      if (owner_[static_cast<size_t>(at)] == stage) {
        obstacle_ = {"a product's left side depends on a product of the same kernel", node(at).spans};
        return false;
      }
      made.has_prologue = true;
      for (int operand : Operands(at)) pending.push_back(operand);
    }
    SortSources(made);
    plan_.stages.push_back(std::move(made));
    return true;
  }

  void AddSource(Stage& stage, int at, bool in_epilogue) {
    stage.sources.push_back({at, in_epilogue});
    if (node(at).op != "input") Keep(at);
  }

  static void SortSources(Stage& stage) {
    std::sort(stage.sources.begin(), stage.sources.end(), [](const Source& a, const Source& b) {
      return std::pair(a.in_epilogue, a.node) < std::pair(b.in_epilogue, b.node);
    });
  }

  const FlatProgram& flat_;
  const Axes& axes_;
  const PlanOptions options_;
  std::vector<std::vector<Product>> groups_;
  std::map<int, int> group_of_;  // product -> group
  std::vector<int> stage_;       // the last group that a node depends on; -1: inputs alone
  std::vector<int> owner_;       // the group whose kernel computes it; -1: whoever needs it
  std::vector<bool> reduced_;    // depends on a reduction over its stage's columns
  std::vector<bool> reduces_;    // some reduction is in it, not through a product
  std::map<int, std::set<int>> kept_;
  std::map<int, std::set<int>> row_kept_;
  std::set<int> in_row_kernel_;
  bool whole_columns_ = false;
  Plan plan_;
  Obstacle obstacle_;
};

}  // namespace

PlanResult MakePlan(const FlatProgram& flat, const Axes& axes, const PlanOptions& options) {
  return Planner(flat, axes, options).Run();
}

std::string KeptType(const FlatProgram& flat, int at) {
  bool narrow = false;
  bool wide = false;
  const auto look = [&](const Arg& arg) {
    if (arg.is_number() || Behind(flat, arg).node != at) return;
    (flat.nodes[static_cast<size_t>(arg.node)].type.dtype == "bfloat16" ? narrow : wide) = true;
  };
  for (size_t i = 0; i < flat.nodes.size(); ++i) {
    if (IsAlias(flat, static_cast<int>(i)) && flat.nodes[i].op != "input") continue;
    for (const Arg& arg : flat.nodes[i].args) look(arg);
  }
  for (const Arg& arg : flat.outputs) look(arg);
  const std::string& own = flat.nodes[static_cast<size_t>(at)].type.dtype;
  if (!IsFloat(own)) return own;
  return narrow && !wide ? "bfloat16" : wide ? "float32" : own;
}

}  // namespace kernelwright::kernels::lift
