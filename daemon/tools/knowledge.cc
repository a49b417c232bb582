// See knowledge.h.
#include "daemon/tools/knowledge.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <set>

#include "daemon/base/files.h"
#include "daemon/base/text.h"
#include "daemon/store/sqlite.h"

namespace kernelwright::tools {
namespace {

constexpr size_t kMostQueryWords = 32;

// 1 for "# x", 2 for "## x"; 0 for other lines.
size_t HeadingLevel(std::string_view line) {
  const size_t level = line.find_first_not_of('#');
  return level != std::string_view::npos && level > 0 && level <= 6 && line[level] == ' ' ? level : 0;
}

// The query in FTS5's language: quoted words, any of them.
std::string MatchExpression(std::string_view query) {
  std::set<std::string> words;
  std::string word;
  const auto take = [&] {
    if (word.size() > 1 && words.size() < kMostQueryWords) words.insert(ToLowerAscii(word));
    word.clear();
  };
  for (char c : query) {
    const bool part =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || static_cast<unsigned char>(c) >= 128;
    if (part) {
      word += c;
    } else {
      take();
    }
  }
  take();
  std::string expression;
  for (const std::string& known : words) {
    if (!expression.empty()) expression += " OR ";
    expression += "\"" + known + "\"";
  }
  return expression;
}

}  // namespace

std::vector<KnowledgeSection> CutSections(const std::string& file, std::string_view markdown) {
  std::vector<KnowledgeSection> sections;
  std::vector<std::string> headings(7);
  KnowledgeSection current{.file = file, .heading = file, .text = {}};
  bool fenced = false;
  const auto finish = [&] {
    if (!Trim(current.text).empty()) sections.push_back(current);
    current.text.clear();
  };
  for (std::string_view line : SplitLines(markdown)) {
    if (line.starts_with("```")) fenced = !fenced;
    const size_t level = fenced ? 0 : HeadingLevel(line);
    if (level == 0) {
      current.text += std::string(line) + "\n";
      continue;
    }
    finish();
    headings[level] = Trim(line.substr(level));
    std::fill(headings.begin() + static_cast<ptrdiff_t>(level) + 1, headings.end(), std::string());
    std::vector<std::string> path;
    std::copy_if(headings.begin(), headings.end(), std::back_inserter(path),
                 [](const std::string& heading) { return !heading.empty(); });
    current.heading = Join(path, " > ");
  }
  finish();
  return sections;
}

struct KnowledgeIndex::State {
  explicit State(store::Database opened) : database(std::move(opened)) {}
  std::mutex mutex;
  store::Database database;
  std::vector<KnowledgeSection> sections;
};

KnowledgeIndex::KnowledgeIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
KnowledgeIndex::~KnowledgeIndex() = default;

Expected<std::unique_ptr<KnowledgeIndex>> KnowledgeIndex::Load(const std::vector<std::filesystem::path>& folders) {
  std::map<std::string, std::string> files;
  for (const std::filesystem::path& folder : folders) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      if (at->path().extension() != ".md") continue;
      Expected<std::string> text = ReadFile(at->path(), size_t{1} << 20);
      if (!text) return Fail(text.error());
      files[at->path().filename().string()] = SanitizeUtf8(*text);
    }
  }
  std::vector<KnowledgeSection> sections;
  for (const auto& [file, text] : files) {
    for (KnowledgeSection& section : CutSections(file, text)) sections.push_back(std::move(section));
  }
  return FromSections(std::move(sections));
}

Expected<std::unique_ptr<KnowledgeIndex>> KnowledgeIndex::FromSections(std::vector<KnowledgeSection> sections) {
  Expected<store::Database> database = store::Database::OpenInMemory();
  if (!database) return Fail(database.error());
  auto state = std::make_unique<State>(*std::move(database));
  // Stemmed, so that "spilling" finds "spills".
  Status made = state->database.Execute(
      "CREATE VIRTUAL TABLE notes USING fts5(heading, body, tokenize = \"porter unicode61 tokenchars '_'\")");
  if (!made.ok()) {
    return Fail(ErrorKind::kEnvironment, "the notes cannot be indexed: " + made.message(), "SQLite",
                "This build of SQLite has no FTS5.");
  }
  if (Status begun = state->database.Execute("BEGIN"); !begun.ok()) return Fail(begun);
  for (size_t i = 0; i < sections.size(); ++i) {
    const Status added = state->database.Run("INSERT INTO notes (rowid, heading, body) VALUES (?, ?, ?)",
                                             static_cast<int64_t>(i), sections[i].heading, sections[i].text);
    if (!added.ok()) return Fail(added);
  }
  if (Status ended = state->database.Execute("COMMIT"); !ended.ok()) return Fail(ended);
  state->sections = std::move(sections);
  return std::unique_ptr<KnowledgeIndex>(new KnowledgeIndex(std::move(state)));
}

Expected<std::vector<KnowledgeSection>> KnowledgeIndex::Search(std::string_view query, size_t most) const {
  const std::string expression = MatchExpression(query);
  std::vector<KnowledgeSection> found;
  if (expression.empty() || most == 0) return found;
  const std::lock_guard lock(state_->mutex);
  // A word in a heading says more than one in the text.
  Expected<store::Statement> rows = state_->database.Query(
      "SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY bm25(notes, 4.0, 1.0), rowid LIMIT ?", expression,
      static_cast<int64_t>(most));
  if (!rows) return Fail(rows.error());
  while (true) {
    const Expected<bool> row = rows->Step();
    if (!row) return Fail(row.error());
    if (!*row) return found;
    found.push_back(state_->sections[static_cast<size_t>(rows->Int(0))]);
  }
}

size_t KnowledgeIndex::size() const { return state_->sections.size(); }

}  // namespace kernelwright::tools
