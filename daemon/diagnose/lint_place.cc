// See lint_place.h.
#include "daemon/diagnose/lint_place.h"

#include <utility>

namespace kernelwright::diagnose {
namespace {

Place OfSpan(const SourceSpan& span) { return {span.file, span.line, span.column, span.end_line, span.end_column}; }

}  // namespace

Place LintPlaces::OfSpans(const std::vector<SourceSpan>& spans) const {
  for (const SourceSpan& span : spans) {
    if (texts_.contains(span.file)) return OfSpan(span);
  }
  return spans.empty() ? Place() : OfSpan(spans.front());
}

Place LintPlaces::Call(const PallasCall& call) const {
  if (auto place = locator_.PlaceOfCall(call)) return *place;
  return OfSpans(call.spans);
}

Place LintPlaces::Block(const PallasCall& call, size_t block) const {
  if (auto place = locator_.PlaceOfBlock(call, block)) return *place;
  return Call(call);
}

Place LintPlaces::Argument(const PallasCall& call, std::string_view argument) const {
  if (auto place = locator_.PlaceOfArgument(call, argument)) return *place;
  return Call(call);
}

Place LintPlaces::Operation(const PallasCall& call, const kernelwright::Operation& operation) const {
  for (const SourceSpan& span : operation.spans) {
    if (texts_.contains(span.file)) return OfSpan(span);
  }
  return texts_.empty() && !operation.spans.empty() ? OfSpan(operation.spans.front()) : Call(call);
}

std::string RefName(const PallasCall& call, size_t position) {
  if (position < call.kernel.inputs.size() && !call.kernel.inputs[position].name.empty()) {
    return call.kernel.inputs[position].name;
  }
  const auto prefetch = static_cast<size_t>(call.num_scalar_prefetch);
  if (position < prefetch) return "args[" + std::to_string(position) + "]";
  if (position < prefetch + call.blocks.size()) return call.blocks[position - prefetch].origin;
  return "scratch[" + std::to_string(position - prefetch - call.blocks.size()) + "]";
}

std::string BlockName(const PallasCall& call, size_t block) {
  return RefName(call, static_cast<size_t>(call.num_scalar_prefetch) + block);
}

std::string ShapeText(const std::vector<int64_t>& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  return text + (dims.size() == 1 ? ",)" : ")");
}

std::string BlockText(const BlockMapping& block) {
  std::string text = "(";
  for (size_t i = 0; i < block.block.size(); ++i) {
    const BlockDim& dim = block.block[i];
    text += i == 0 ? "" : ", ";
    text += dim.kind == BlockDim::Kind::kSqueezed ? "None" : std::to_string(dim.size);
  }
  return text + (block.block.size() == 1 ? ",)" : ")");
}

Diagnostic MakeLint(std::string id, std::string name, Severity severity, Place place, const std::string& chip) {
  Diagnostic diagnostic;
  diagnostic.page = "docs/diagnostics/" + id + ".md";
  diagnostic.id = std::move(id);
  diagnostic.name = std::move(name);
  diagnostic.severity = severity;
  diagnostic.stage = Stage::kBlocks;
  diagnostic.place = std::move(place);
  if (!chip.empty()) diagnostic.chips.push_back(chip);
  return diagnostic;
}

}  // namespace kernelwright::diagnose
