// See check_shapes.h.
#include "daemon/agents/check_shapes.h"

#include "daemon/kernels/shapes.h"

namespace kernelwright::agents {
namespace {

constexpr int64_t kMinBlocks = 2;  // per grid axis: the second block shows what the first hides

}  // namespace

Expected<ShapeChoice> ChooseShapes(const FrozenReference& frozen, const std::vector<FileText>& files,
                                   const std::vector<PallasCall>& full, const std::string& chip, Toolchain& toolchain,
                                   const Limits& limits, std::stop_token stop) {
  ShapeChoice choice;
  for (const CheckShape& shape : frozen.ladder) {
    TraceRequest request{
        {frozen.original.file, frozen.original.function, files}, shape.inputs, {chip}, false, false, limits};
    auto report = toolchain.Trace(request, stop);
    if (!report) return Fail(report.error());
    if (report->outcome == JobOutcome::kCancelled) return Fail(ErrorKind::kCancelled, "the check was cancelled");
    if (report->outcome != JobOutcome::kDone) {
      choice.why_none = std::string("tracing at ") + shape.name + " ended by " + JobOutcomeName(report->outcome);
      continue;
    }
    if (report->error) {
      choice.why_none = "at " + shape.name + ": " + report->error->message.substr(0, report->error->message.find('\n'));
      continue;
    }
    if (kernels::CoversFullShape(report->calls_seen, full, kMinBlocks)) {
      choice.shapes = {shape};
      choice.why_none.clear();
      return choice;
    }
    choice.why_none =
        "at " + shape.name + " some grid axis has fewer than two blocks, or other tails than at full size";
  }
  if (choice.why_none.empty()) choice.why_none = "no reduced shape fits the interpreter's limits";
  return choice;
}

}  // namespace kernelwright::agents
