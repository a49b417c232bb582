// check, compile, profile, tune: the product's own stages on the kernel as the workspace has it.
#include "daemon/base/text.h"
#include "daemon/tools/registry.h"

namespace kernelwright::tools {
namespace {

using Action = Expected<ActionReport> (KernelActions::*)(const ActionRequest&, const std::stop_token&);

class KernelActionTool : public Tool {
 public:
  KernelActionTool(KernelActions& actions, const ToolServices& services, Action action, const char* name,
                   const char* description)
      : actions_(actions),
        workspace_(services.workspace),
        chips_(services.chips),
        action_(action),
        spec_{name, description,
              ObjectSchema({{"function", StringField("Function; default: the one that this run is about")},
                            {"chips",
                             {{"type", "array"},
                              {"maxItems", 4},
                              {"items", {{"type", "string"}}},
                              {"description", "Chips, such as v5e; default: those of this run"}}}},
                           {})} {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token& stop) override {
    ActionRequest request;
    request.function = TextArgument(arguments, "function");
    if (const auto chips = arguments.find("chips"); chips != arguments.end()) {
      for (const Json& chip : *chips) {
        const std::string name = chip.get<std::string>();
        if (chips_ != nullptr) {
          if (const auto known = chips_->Get(name); !known) return ToolError(known.error());
        }
        request.chips.push_back(name);
      }
    }
    if (workspace_ != nullptr) request.files = workspace_->Edited();
    Expected<ActionReport> report = (actions_.*action_)(request, stop);
    if (report) {
      return ToolOutput{.text = std::move(report->text),
                        .is_error = !report->good,
                        .data = std::move(report->data),
                        .progress = report->progress};
    }
    const ErrorKind kind = report.error().kind();
    // What the code or the arguments are at fault for is for the model to mend.
    if (kind == ErrorKind::kUserCode || kind == ErrorKind::kUsage || kind == ErrorKind::kNotFound) {
      return ToolError(report.error());
    }
    return Fail(report.error());
  }

 private:
  KernelActions& actions_;
  const Workspace* workspace_;
  const cost::ChipTable* chips_;
  const Action action_;
  const models::ToolSpec spec_;
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeKernelActions(const ToolServices& services) {
  std::vector<std::unique_ptr<Tool>> tools;
  if (services.actions == nullptr) return tools;
  const auto add = [&](Action action, const char* name, const char* description) {
    tools.push_back(std::make_unique<KernelActionTool>(*services.actions, services, action, name, description));
  };
  add(&KernelActions::Compile, "compile",
      "Compiles the kernel, with your edits, by the TPU's own compiler, and estimates its time. Says the root cause "
      "and "
      "the line of an error. Do this before `check`: it is faster.");
  add(&KernelActions::Check, "check",
      "Runs the kernel, with your edits, in the interpreter and compares its values with the reference; finds races "
      "and "
      "uninitialised memory. Takes longer than `compile`.");
  add(&KernelActions::Profile, "profile",
      "Where the estimated cycles of the kernel go, by source line and unit, and what bounds it.");
  add(&KernelActions::Tune, "tune",
      "Searches block sizes and compiler parameters of the kernel as it is now. Use it after the structure is right.");
  return tools;
}

}  // namespace kernelwright::tools
