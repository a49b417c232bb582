// run_history: what was tried in this run, what came of it, and why it failed, so that nothing is tried twice.
#include <algorithm>

#include "daemon/base/text.h"
#include "daemon/tools/registry.h"
#include "fmt/core.h"

namespace kernelwright::tools {
namespace {

constexpr size_t kMostEntries = 40;

std::string Line(const HistoryEntry& entry) {
  std::string text = entry.id + " " + entry.status;
  if (entry.estimate_ms) {
    text += fmt::format(", {:.4g} ms {}{}", *entry.estimate_ms, entry.evidence,
                        entry.chip.empty() ? "" : " on " + entry.chip);
  }
  text += ": " + Truncate(entry.what, 160);
  if (!entry.gate.empty()) text += " [" + entry.gate + "]";
  if (!entry.why.empty()) text += "\n   why: " + ReplaceAll(Truncate(entry.why, 400), "\n", "\n   ");
  return text + "\n";
}

class RunHistoryTool : public Tool {
 public:
  explicit RunHistoryTool(RunHistory& history) : history_(history) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token&) override {
    Expected<std::vector<HistoryEntry>> entries = history_.Entries();
    if (!entries) return Fail(entries.error());
    const std::string only = TextArgument(arguments, "only");
    std::erase_if(*entries, [&](const HistoryEntry& entry) {
      const bool good = entry.status == "passed" || entry.status == "best";
      return (only == "passed" && !good) || (only == "failed" && good);
    });
    if (entries->empty()) return ToolOutput{.text = "Nothing like that was tried yet.\n", .data = nullptr};
    const size_t left_out = entries->size() > kMostEntries ? entries->size() - kMostEntries : 0;
    std::string text;
    if (left_out > 0) text = "[" + std::to_string(left_out) + " older ones are left out]\n";
    for (size_t i = left_out; i < entries->size(); ++i) text += Line((*entries)[i]);
    return ToolOutput{.text = std::move(text), .data = {{"entries", entries->size()}}};
  }

 private:
  RunHistory& history_;
  const models::ToolSpec spec_{
      "run_history", "What was tried in this run, in order: the change, its estimated time, and why it failed.",
      ObjectSchema({{"only", {{"enum", {"all", "passed", "failed"}}, {"description", "Which ones; default all"}}}},
                   {})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeRunHistory(const ToolServices& services) {
  if (services.history == nullptr) return {};
  return OneTool<RunHistoryTool>(*services.history);
}

}  // namespace kernelwright::tools
