// Which family answers which diagnostic; see fixes.h.
#include "daemon/diagnose/fixes.h"

#include <string_view>
#include <utility>

#include "daemon/diagnose/fix_families.h"

namespace kernelwright::diagnose {
namespace {

using Propose = Fixes (*)(const FixRequest&);

Propose FamilyOf(std::string_view id) {
  static constexpr std::pair<std::string_view, Propose> kFamilies[] = {
      {"D01", RoundBlocks},
      {"D03", RoundBlocks},
      {"D05", AppendBlockIds},
      {"D06", MatchGridIds},
      {"D07", MatchGridIds},
      {"D08", SqueezeBlock},
      {"D09", DivideWhole},
      {"D13", PadSemantics},
      {"D14", DropBlockFactor},
      {"D15", MoveReductionLast},
      {"D16", MakeArbitrary},
      {"D17", CoverOutput},
      {"D30", ZeroAccumulator},
      {"D31", MaskTail},
      {"D33", StoreAtLastStep},
      {"D34", WaitForCopy},
      {"D36", WaitForCopy},
      {"D50", StoreResult},
      {"D52", GuardStatements},
      {"D53", CastStored},
      {"D54", KeepDims},
      {"D57", LoopOverRows},
      {"D58", DropPlaceholder},
      {"D77", IndexTheRef},
      {"D93", LowerVmemLimit},
      {"D100", ReplaceOperation},
      {"D102", SelectInsteadOfScatter},
      {"D104", ReplaceOperation},
      {"D105", ReplaceOperation},
      {"D106", ReplaceOperation},
      {"D107", ReplaceOperation},
      {"D108", ReplaceOperation},
      {"D110", DropCheckpoint},
      {"D112", IntegerIota},
      {"D120", NarrowTo32Bits},
      {"D121", AvoidFloat16},
      {"D123", DropPrecision},
      {"D124", AccumulateIn32Bits},
      {"D125", DropPrecision},
      {"D132", ComputeWide},
      {"D134", ComputeWide},
      {"D135", ComputeWide},
      {"D136", ComputeWide},
      {"D137", ComputeWide},
      {"D138", ExpandMaskAsInteger},
      {"D139", CarryMaskAsInteger},
  };
  for (const auto& [family, propose] : kFamilies) {
    if (family == id) return propose;
  }
  return nullptr;
}

}  // namespace

std::vector<Fix> ProposeFixes(const Diagnostic& diagnostic, const FixContext& context) {
  const Propose propose = FamilyOf(diagnostic.id);
  const auto text = context.texts.find(diagnostic.place.file);
  if (propose == nullptr || text == context.texts.end() || diagnostic.place.line < 1) return {};
  const FixSource source(text->first, text->second, diagnostic.place);
  // Edits of code that does not parse would be guesses.
  if (!source.place() || !source.file().errors().empty()) return {};
  return propose({diagnostic, context, source});
}

}  // namespace kernelwright::diagnose
