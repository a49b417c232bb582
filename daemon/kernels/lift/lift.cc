// See lift.h.
#include "daemon/kernels/lift/lift.h"

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/kernels/lift/source_edit.h"

namespace kernelwright::kernels::lift {
namespace {

constexpr const char* kRowsRule = "lift-rows";
constexpr const char* kProductRule = "lift-matmul";

std::string Count(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

double Bytes(const TensorType& type) {
  double bytes = DtypeBits(type.dtype) / 8.0;
  for (int64_t dim : type.dims) bytes *= static_cast<double>(dim);
  return bytes;
}

class Lifter {
 public:
  explicit Lifter(const LiftRequest& request) : request_(request), context_(request.context) {}

  Proposals Run() {
    auto target = FindTarget(context_);
    if (const auto* obstacle = std::get_if<Obstacle>(&target)) return Refused(kRowsRule, *obstacle);
    target_ = std::get<Target>(std::move(target));
    auto flat = Flatten(context_.program);
    if (const auto* obstacle = std::get_if<Obstacle>(&flat)) return Refused(kRowsRule, *obstacle);
    flat_ = std::get<FlatProgram>(std::move(flat));
    const bool products =
        std::any_of(flat_.nodes.begin(), flat_.nodes.end(), [](const Node& node) { return node.op == "dot_general"; });
    rule_ = products ? kProductRule : kRowsRule;
    auto axes = AnalyzeAxes(flat_);
    if (const auto* obstacle = std::get_if<Obstacle>(&axes)) return Refused(rule_, *obstacle);
    axes_ = std::get<Axes>(std::move(axes));
    for (size_t i = flat_.inputs; i < flat_.nodes.size(); ++i) {
      const std::string why = WhyNotInKernel(flat_, flat_.nodes[i]);
      if (!why.empty()) return Refused(rule_, {why, flat_.nodes[i].spans});
    }
    std::optional<FlatProgram> other;
    if (request_.other != nullptr) {
      auto flattened = Flatten(*request_.other);
      if (auto* found = std::get_if<FlatProgram>(&flattened)) other = std::move(*found);
    }
    sizes_ = CompareSizes(flat_, axes_, other ? &*other : nullptr);
    names_ = NameValues(flat_, sizes_.means, context_.files);

    // Fused further first: where the two are the same program the second is left out.
    for (const bool fuse : {true, false}) {
      auto plan = MakePlan(flat_, axes_, {fuse});
      if (const auto* obstacle = std::get_if<Obstacle>(&plan)) {
        Refuse(rule_, *obstacle);
        continue;
      }
      const Plan& made = std::get<Plan>(plan);
      if (fuse && !made.fused_rows) continue;
      Propose(made);
    }
    return std::move(result_);
  }

 private:
  Proposals Refused(const std::string& rule, const Obstacle& obstacle) {
    Refuse(rule, obstacle);
    return std::move(result_);
  }

  void Refuse(const std::string& rule, const Obstacle& obstacle) {
    LineRange place = PlaceOf(obstacle.spans, context_.files);
    if (place.line == 0 && target_.file != nullptr) {
      place = {target_.file->path(), target_.function.position.line, target_.function.position.line};
    }
    result_.refusals.push_back({rule, obstacle.reason, place});
  }

  void Propose(const Plan& plan) {
    const Modules modules = request_.module_path.empty() ? target_.modules : Modules();
    const WriterContext writer{flat_, axes_, sizes_, names_, modules};
    std::vector<WrittenStage> stages;
    NameSet titles;
    const std::string& function = target_.function.name;
    const std::string base =
        "_" +
        function.substr(function.find_first_not_of('_') == std::string::npos ? 0 : function.find_first_not_of('_'));
    for (const Stage& stage : plan.stages) {
      std::string part;
      if (plan.stages.size() > 1) {
        const bool last = &stage == &plan.stages.back();
        part = "_" + (last ? std::string("out") : names_.at(stage.outputs.front()));
      }
      const std::string title = titles.Take(base.substr(1) + part);
      WrittenStage written;
      written.names = {"_" + title + "_kernel", "_" + title + "_call", title};
      auto text = WriteStage(writer, stage, written.names);
      if (const auto* obstacle = std::get_if<Obstacle>(&text)) {
        Refuse(rule_, *obstacle);
        return;
      }
      written.text = std::get<StageText>(std::move(text));
      written.outputs = stage.outputs;
      stages.push_back(std::move(written));
    }
    Proposal proposal;
    proposal.rule = rule_;
    proposal.what = What(plan);
    const FunctionInfo& info = target_.function;
    proposal.place = {target_.file->path(), info.position.line, target_.file->Position(info.range.end).line};
    proposal.reason = Reason(plan);
    proposal.evidence = Evidence(plan);
    proposal.exactness = Exactness::kReassociation;
    proposal.check_inputs = FoldedInputs();
    const auto edited = EditSource(request_, target_, writer, stages, proposal);
    if (const auto* obstacle = std::get_if<Obstacle>(&edited)) {
      Refuse(rule_, *obstacle);
      return;
    }
    result_.proposals.push_back(std::move(proposal));
  }

  // The inputs with all rows in one dimension, so that a reduced shape is found by the blocks that cut it.
  std::vector<InputSpec> FoldedInputs() const {
    std::vector<InputSpec> inputs = context_.inputs;
    for (size_t i = 0; i < flat_.inputs; ++i) {
      const bool weight = axes_.weights.contains(static_cast<int>(i));
      if (weight || !axes_.layout[i].rows) continue;
      const auto input = std::find_if(inputs.begin(), inputs.end(),
                                      [&](const InputSpec& each) { return each.PathText() == flat_.nodes[i].name; });
      if (input == inputs.end() || input->dims.size() != axes_.dims[i].size()) continue;
      size_t last = input->dims.size();
      for (size_t d = 0; d < input->dims.size(); ++d) {
        if (!axes_.rows.contains(axes_.dims[i][d])) continue;
        last = d;
        input->dims[d] = 1;
      }
      if (last < input->dims.size()) input->dims[last] = axes_.row_count;
    }
    return inputs;
  }

  static std::string What(const Plan& plan) {
    size_t products = 0;
    size_t rows = 0;
    for (const Stage& stage : plan.stages) ++(stage.products.empty() ? rows : products);
    std::string text;
    if (products > 0) text = Count(products, "matmul kernel");
    if (rows > 0) text += (text.empty() ? "" : " and ") + Count(rows, "kernel") + " over whole rows";
    return "lift to " + text + (plan.fused_rows ? ", row statistics in the epilogue" : "");
  }

  std::string Reason(const Plan& plan) const {
    std::string text;
    for (const Stage& stage : plan.stages) {
      if (!text.empty()) text += "; ";
      if (stage.products.empty()) {
        text += "what is done to whole rows passes over HBM once";
        continue;
      }
      text += Count(stage.products.size(), "product") + (stage.products.size() > 1 ? " of the same rows" : "");
      if (stage.has_prologue) text += ", the left side computed from whole rows in VMEM";
      const bool epilogue =
          stage.outputs.size() != stage.products.size() || stage.outputs.front() != stage.products.front().node;
      if (epilogue) text += ", what follows fused behind the last step";
    }
    return text;
  }

  std::string Evidence(const Plan& plan) const {
    double ends = 0;
    for (size_t i = 0; i < flat_.inputs; ++i) ends += Bytes(flat_.nodes[i].type);
    for (const Arg& output : flat_.outputs) {
      if (!output.is_number()) ends += Bytes(flat_.nodes[static_cast<size_t>(output.node)].type);
    }
    double kept = 0;
    for (const Stage& stage : plan.stages) {
      if (&stage == &plan.stages.back()) continue;
      for (int node : stage.outputs) kept += Bytes(flat_.nodes[static_cast<size_t>(node)].type);
    }
    char text[160];
    std::snprintf(text, sizeof text,
                  "from the trace: arguments and results are %.1f MiB, values between kernels %.1f MiB",
                  ends / (1 << 20), kept / (1 << 20));
    std::string evidence = text;
    if (!sizes_.free) evidence += "; it takes the traced sizes only, because " + sizes_.why_fixed;
    return evidence;
  }

  const LiftRequest& request_;
  const ProposalContext& context_;
  Target target_;
  FlatProgram flat_;
  Axes axes_;
  Sizes sizes_;
  std::map<int, std::string> names_;
  std::string rule_;
  Proposals result_;
};

}  // namespace

Proposals ProposeLifts(const LiftRequest& request) { return Lifter(request).Run(); }

}  // namespace kernelwright::kernels::lift
