// See check_fixes.h. A proof is a check of its own over the edited texts, with the same stages and limits.
#include "daemon/agents/check_fixes.h"

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/base/hash.h"
#include "daemon/kernels/edits.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Fix;
using Texts = std::map<std::string, std::string>;

constexpr int kMaxProofs = 12;  // of one function: each costs a trace and a compile per chip
constexpr int kMaxRounds = 4;   // a mended error can uncover the next one

size_t CountOf(const std::vector<Diagnostic>& diagnostics, const std::string& id) {
  return static_cast<size_t>(std::count_if(diagnostics.begin(), diagnostics.end(),
                                           [&](const Diagnostic& diagnostic) { return diagnostic.id == id; }));
}

bool IsError(const Diagnostic& diagnostic) { return diagnostic.severity == diagnose::Severity::kError; }

class Prover {
 public:
  Prover(const FunctionCheck& check, const CheckTarget& target, const FunctionFindings& findings,
         std::vector<Diagnostic>* diagnostics, const std::stop_token& stop)
      : check_(check), target_(target), findings_(findings), diagnostics_(*diagnostics), stop_(stop) {
    check_.report = [](const CheckStageReport&) {};
    for (const cost::Chip* chip : check.inputs.chips) chips_.push_back(chip->name);
  }

  void Go() {
    std::vector<std::vector<Fix>> proposals;
    proposals.reserve(diagnostics_.size());
    for (Diagnostic& diagnostic : diagnostics_) {
      // What an earlier function proved stays.
      std::vector<Fix> proven;
      std::vector<Fix> open;
      for (Fix& fix : diagnostic.fixes) (fix.verified.empty() ? open : proven).push_back(std::move(fix));
      diagnostic.fixes = std::move(proven);
      if (diagnostic.fixes.empty() && open.empty()) open = Propose(diagnostic, findings_);
      proposals.push_back(std::move(open));
    }
    bool open_error = false;
    for (size_t i = 0; i < diagnostics_.size(); ++i) {
      for (Fix& fix : proposals[i]) {
        auto edited = kernels::ApplyEdits(findings_.texts, fix.edits);
        if (!edited || edited->empty()) continue;
        if (!Holds(Overlay(findings_.texts, *edited), diagnostics_[i].id)) continue;
        fix.verified = chips_;
        diagnostics_[i].fixes.push_back(fix);
      }
      if (IsError(diagnostics_[i]) && diagnostics_[i].fixes.empty() && !proposals[i].empty()) open_error = true;
    }
    if (open_error) Together(proposals);
  }

 private:
  std::vector<Fix> Propose(const Diagnostic& diagnostic, const FunctionFindings& findings) const {
    ErrorContext context;
    context.texts = &findings.texts;
    context.target = &target_;
    context.file = findings.source.file;
    context.calls = findings.calls;
    context.chips = chips_;
    context.stage = diagnostic.stage;
    return check_.inputs.rules->ProposeFixes(diagnostic, context, check_.inputs.chips);
  }

  static Texts Overlay(Texts texts, const std::map<std::string, std::string>& edited) {
    for (const auto& [path, text] : edited) texts[path] = text;
    return texts;
  }

  // A check of the texts; nothing when the limit of proofs is reached or it was cancelled.
  std::optional<FunctionFindings> Recheck(const Texts& texts) {
    if (proofs_ >= kMaxProofs || stop_.stop_requested()) return std::nullopt;
    ++proofs_;
    Source source{findings_.source.file, target_.function, {}};
    source.files.reserve(texts.size());
    for (const auto& [path, text] : texts) source.files.push_back({path, text});
    const kernels::SourceFile entry(source.file, texts.at(source.file));
    if (!entry.errors().empty()) return std::nullopt;
    return CheckFunction(check_, source, target_, stop_);
  }

  bool Clean(const FunctionFindings& found) const {
    return found.failure.ok() && std::none_of(found.diagnostics.begin(), found.diagnostics.end(), IsError) &&
           std::all_of(found.chip_status.begin(), found.chip_status.end(),
                       [](const auto& chip) { return chip.second == "clean"; });
  }

  // The lint of names sees the text alone, so it is asked again here.
  size_t Remaining(const Texts& texts, const FunctionFindings& found, const std::string& id) const {
    const kernels::SourceFile entry(findings_.source.file, texts.at(findings_.source.file));
    const auto jax = found.versions.find("jax");
    return CountOf(found.diagnostics, id) +
           CountOf(check_.inputs.rules->LintApi(entry, jax == found.versions.end() ? "" : jax->second), id);
  }

  bool Holds(const Texts& texts, const std::string& id) {
    const auto found = Recheck(texts);
    return found && Clean(*found) && Remaining(texts, *found, id) < CountOf(diagnostics_, id);
  }

  // All errors at once, and what their going uncovers.
  void Together(const std::vector<std::vector<Fix>>& proposals) {
    Texts texts = findings_.texts;
    std::vector<size_t> mended;
    std::set<std::string> titles;
    for (size_t i = 0; i < diagnostics_.size(); ++i) {
      if (!IsError(diagnostics_[i]) || proposals[i].empty()) continue;
      mended.push_back(i);
    }
    std::vector<kernels::TextEdit> edits;
    for (const size_t i : mended) {
      const Fix& fix = proposals[i].front();
      std::vector<kernels::TextEdit> more = edits;
      for (const kernels::TextEdit& edit : fix.edits) {
        const bool there = std::any_of(more.begin(), more.end(), [&](const kernels::TextEdit& other) {
          return other.file == edit.file && other.range == edit.range && other.replacement == edit.replacement;
        });
        if (!there) more.push_back(edit);
      }
      if (kernels::ApplyEdits(findings_.texts, more)) edits = std::move(more);
      titles.insert(fix.title);
    }
    auto edited = kernels::ApplyEdits(texts, edits);
    for (int round = 0; edited && round < kMaxRounds; ++round) {
      texts = Overlay(std::move(texts), *edited);
      auto found = Recheck(texts);
      if (!found || !found->failure.ok()) return;
      if (Clean(*found)) return OfferAll(mended, titles, texts);
      std::vector<kernels::TextEdit> next;
      for (const Diagnostic& diagnostic : found->diagnostics) {
        if (!IsError(diagnostic)) continue;
        std::vector<Fix> fixes = diagnostic.fixes.empty() ? Propose(diagnostic, *found) : diagnostic.fixes;
        if (fixes.empty()) continue;
        std::vector<kernels::TextEdit> more = next;
        more.insert(more.end(), fixes.front().edits.begin(), fixes.front().edits.end());
        if (!kernels::ApplyEdits(texts, more)) continue;
        next = std::move(more);
        titles.insert(fixes.front().title);
      }
      if (next.empty()) return;
      edited = kernels::ApplyEdits(texts, next);
    }
  }

  void OfferAll(const std::vector<size_t>& mended, const std::set<std::string>& titles, const Texts& texts) {
    Fix fix;
    for (const std::string& title : titles) fix.title += (fix.title.empty() ? "" : "; ") + title;
    fix.edits = EditsBetween(findings_.texts, texts);
    fix.verified = chips_;
    for (const size_t i : mended) {
      if (diagnostics_[i].fixes.empty()) diagnostics_[i].fixes.push_back(fix);
    }
  }

  FunctionCheck check_;
  const CheckTarget& target_;
  const FunctionFindings& findings_;
  std::vector<Diagnostic>& diagnostics_;
  const std::stop_token& stop_;
  std::vector<std::string> chips_;
  int proofs_ = 0;
};

}  // namespace

std::vector<kernels::TextEdit> EditsBetween(const Texts& old_texts, const Texts& new_texts) {
  std::vector<kernels::TextEdit> edits;
  for (const auto& [path, text] : new_texts) {
    const auto old = old_texts.find(path);
    if (old == old_texts.end() || old->second == text) continue;
    const std::string& before = old->second;
    size_t head = 0;
    while (head < before.size() && head < text.size() && before[head] == text[head]) ++head;
    size_t tail = 0;
    while (tail < before.size() - head && tail < text.size() - head &&
           before[before.size() - 1 - tail] == text[text.size() - 1 - tail]) {
      ++tail;
    }
    // Whole lines, so that no character is cut.
    head = head == 0 ? 0 : before.rfind('\n', head - 1) + 1;
    const size_t line_end = before.find('\n', before.size() - tail);
    tail = tail == 0 || line_end == std::string::npos ? 0 : before.size() - line_end;
    edits.push_back({path,
                     {static_cast<uint32_t>(head), static_cast<uint32_t>(before.size() - tail)},
                     text.substr(head, text.size() - tail - head),
                     Sha256Hex(before)});
  }
  return edits;
}

void OfferFixes(const FunctionCheck& check, const CheckTarget& target, const FunctionFindings& findings,
                std::vector<Diagnostic>* diagnostics, const std::stop_token& stop) {
  if (diagnostics->empty()) return;
  Prover(check, target, findings, diagnostics, stop).Go();
}

}  // namespace kernelwright::agents
