// Applies a fix to code in which the diagnostic's place is marked: `« … »`.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/diagnose/fixes.h"
#include "daemon/kernels/edits.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::diagnose {

struct MendInput {
  std::string id;
  std::string marked;  // code
  std::string raw = {};
  std::vector<PallasCall> calls = {};
  std::vector<const cost::Chip*> chips = {};
  size_t alternative = 0;
};

// The mended text, "none" when there is no such fix, or the error of the edits. The result parses.
inline std::string Mend(const MendInput& input) {
  std::string text = input.marked;
  const std::string open = "«";
  const std::string close = "»";
  const auto begin = text.find(open);
  if (begin == std::string::npos) return "no mark";
  text.erase(begin, open.size());
  const auto end = text.find(close);
  if (end == std::string::npos) return "no end mark";
  text.erase(end, close.size());
  const kernels::SourceFile file("k.py", text);
  Diagnostic diagnostic;
  diagnostic.id = input.id;
  diagnostic.raw = input.raw;
  const auto first = file.Position(static_cast<uint32_t>(begin));
  const auto last = file.Position(static_cast<uint32_t>(end));
  diagnostic.place = {"k.py", first.line, first.column, last.line, last.column};
  const std::map<std::string, std::string> texts = {{"k.py", text}};
  const auto fixes = ProposeFixes(diagnostic, {texts, input.calls, input.chips});
  if (fixes.size() <= input.alternative) return "none";
  auto mended = kernels::ApplyEdits("k.py", text, fixes[input.alternative].edits);
  if (!mended) return mended.error().ToString();
  if (!kernels::SourceFile("k.py", *mended).errors().empty()) return "does not parse:\n" + *mended;
  return *mended;
}

}  // namespace kernelwright::diagnose
