// Full-text search in the notes of agents/knowledge (and in the user's own): Markdown, cut at its headings, indexed by
// SQLite's FTS5 in memory when it is loaded. No service, no network.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::tools {

// A section: from one heading to the next of the same or a higher level that starts a section.
struct KnowledgeSection {
  std::string file;     // "blocks.md"
  std::string heading;  // "Blocks > Legal shapes"
  std::string text;     // Markdown, without the heading's own line
};

// Cuts one file. Headings inside code fences are none.
std::vector<KnowledgeSection> CutSections(const std::string& file, std::string_view markdown);

class KnowledgeIndex {
 public:
  // All *.md of these folders, in order; one that does not exist is skipped. A file of a later folder replaces one of
  // the same name. kEnvironment when this SQLite has no FTS5.
  static Expected<std::unique_ptr<KnowledgeIndex>> Load(const std::vector<std::filesystem::path>& folders);
  static Expected<std::unique_ptr<KnowledgeIndex>> FromSections(std::vector<KnowledgeSection> sections);
  ~KnowledgeIndex();

  // The sections that fit the words best, best first. Any text is a query: it is split into words, and sections with
  // more and rarer ones of them come first. Thread-safe.
  Expected<std::vector<KnowledgeSection>> Search(std::string_view query, size_t most) const;
  size_t size() const;

 private:
  struct State;
  explicit KnowledgeIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace kernelwright::tools
