// search_knowledge: the notes on kernels for TPUs that fit some words best.
#include <set>

#include "daemon/tools/registry.h"

namespace kernelwright::tools {
namespace {

constexpr size_t kSections = 4;
constexpr size_t kMostSectionBytes = 3500;

class SearchKnowledgeTool : public Tool {
 public:
  explicit SearchKnowledgeTool(const KnowledgeIndex& index) : index_(index) {}

  const models::ToolSpec& spec() const override { return spec_; }

  Expected<ToolOutput> Run(const Json& arguments, const std::stop_token&) override {
    const Expected<std::vector<KnowledgeSection>> found = index_.Search(TextArgument(arguments, "query"), kSections);
    if (!found) return Fail(found.error());
    if (found->empty()) return ToolError("no note has these words. Try others: the operation, the unit, the symptom.");
    std::string text;
    Json headings = Json::array();
    bool fresh = false;
    for (const KnowledgeSection& section : *found) {
      text += "## " + section.heading + " (" + section.file + ")\n" +
              CutLines(section.text, kMostSectionBytes, "ask for a part of it") + "\n";
      headings.push_back(section.heading);
      fresh = seen_.insert(section.file + section.heading).second || fresh;
    }
    return ToolOutput{.text = std::move(text), .data = {{"sections", std::move(headings)}}, .progress = fresh};
  }

 private:
  const KnowledgeIndex& index_;
  std::set<std::string> seen_;
  const models::ToolSpec spec_{
      "search_knowledge",
      "Notes on Pallas kernels for TPUs: legal blocks, VMEM, grid order, costs of operations per chip, patterns, forms "
      "of "
      "operations that do not compile, templates.",
      ObjectSchema({{"query", StringField("A few words: 'argmax bf16', 'spills', 'online softmax'")}}, {"query"})};
};

}  // namespace

std::vector<std::unique_ptr<Tool>> MakeSearchKnowledge(const ToolServices& services) {
  if (services.knowledge == nullptr) return {};
  return OneTool<SearchKnowledgeTool>(*services.knowledge);
}

}  // namespace kernelwright::tools
