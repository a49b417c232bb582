// Which call and which frame an error is about. Parts of a call are found in locate_anchor.cc. See locate.h.
#include "daemon/diagnose/locate.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "daemon/diagnose/locate_operand.h"

namespace kernelwright::diagnose {
namespace {

using kernels::Node;

// Name of the primitive that a text is about: of an unimplemented one, or the outermost name of an MLIR location.
std::string PrimitiveOf(const CodeError& error) {
  for (const std::string* text : {&error.message, &error.cause}) {
    Captures captures;
    for (const char* pattern :
         {"Unimplemented primitive in Pallas TPU lowering for {:line}: {name:word}. ", "loc(\"{name:word}:\"("}) {
      const Expected<Pattern> parsed = Pattern::Parse(pattern);
      if (parsed && parsed->Find(*text, 0, captures)) return captures["name"];
    }
  }
  return {};
}

// Calls visit(operation) for each operation that is or holds the primitive, outermost first, until it returns true.
bool FindPrimitive(const Graph& graph, const std::string& primitive, std::vector<const Operation*>& around) {
  for (const Operation& operation : graph.operations) {
    around.push_back(&operation);
    if (operation.name == primitive) return true;
    for (const Graph& region : operation.regions) {
      if (FindPrimitive(region, primitive, around)) return true;
    }
    around.pop_back();
  }
  return false;
}

// The name in "HLO name `mm.1`" or "for %mm.1 = ", without the number.
std::string HloName(const CodeError& error) {
  for (const char* pattern : {"HLO name `{name:word}`", "stack for %{name:word} = ", "] :: {name:word}"}) {
    Captures captures;
    const Expected<Pattern> parsed = Pattern::Parse(pattern);
    if (!parsed || !parsed->Find(error.message, 0, captures)) continue;
    std::string name = captures["name"];
    return name.substr(0, name.rfind('.'));
  }
  return {};
}

double LargestBlock(const PallasCall& call) {
  double bytes = 0;
  for (const BlockMapping& block : call.blocks) bytes = std::max(bytes, BlockBytes(block));
  return bytes;
}

// The traced call that an error without frames is about.
const PallasCall* ChooseCall(const CodeError& error, const std::vector<PallasCall>& calls) {
  if (calls.empty()) return nullptr;
  if (calls.size() == 1) return &calls.front();
  Captures at;
  const Expected<Pattern> named = Pattern::Parse("pallas_call {name:word} at {file:line}:{line:int}");
  if (named && named->Find(error.message, 0, at)) {
    for (const PallasCall& call : calls) {
      if (call.kernel_span.file == at["file"] && std::to_string(call.kernel_span.line) == at["line"]) return &call;
    }
  }
  if (error.stage == "trace") return &calls.back();  // tracing stops at the first error
  const std::string name = HloName(error);
  for (const PallasCall& call : calls) {
    if (!name.empty() && call.name == name) return &call;
  }
  return &*std::max_element(calls.begin(), calls.end(),
                            [](const PallasCall& a, const PallasCall& b) { return LargestBlock(a) < LargestBlock(b); });
}

}  // namespace

Locator::Locator(const std::map<std::string, std::string>& texts) {
  files_.reserve(texts.size());
  for (const auto& [path, text] : texts) files_.push_back(std::make_unique<LocatedFile>(path, text));
}

Locator::~Locator() = default;

const LocatedFile* Locator::FileOf(const std::string& path) const {
  const auto found =
      std::find_if(files_.begin(), files_.end(), [&](const auto& file) { return file->source().path() == path; });
  return found == files_.end() ? nullptr : found->get();
}

std::optional<Place> Locator::PlaceOfSpan(const SourceSpan& span) const {
  const LocatedFile* file = FileOf(span.file);
  if (file == nullptr || span.line <= 0) return std::nullopt;
  if (span.column > 0 && span.end_column > 0 && span.end_line >= span.line) {
    return Place{span.file, span.line, span.column, span.end_line, span.end_column};
  }
  return file->PlaceOfLine(span.line);
}

std::optional<Locator::Site> Locator::SiteOfSpans(const std::vector<SourceSpan>& spans) const {
  for (const SourceSpan& span : spans) {
    const LocatedFile* file = FileOf(span.file);
    if (file == nullptr) continue;
    if (const PallasCallSite* site = file->SiteAt(span.line, span.end_line)) return Site(file, site);
  }
  for (const SourceSpan& span : spans) {
    const LocatedFile* file = FileOf(span.file);
    if (file == nullptr) continue;
    if (const PallasCallSite* site = file->SiteThrough(span.line)) return Site(file, site);
  }
  return std::nullopt;
}

std::optional<Locator::Site> Locator::SiteOf(const CodeError& error, const std::vector<PallasCall>& calls,
                                             const PallasCall*& call) const {
  call = nullptr;
  std::optional<Site> site = SiteOfSpans(error.frames);
  if (site) {
    for (const PallasCall& candidate : calls) {
      const std::optional<Site> of_call = SiteOfSpans(candidate.spans);
      if (of_call && of_call->site == site->site) call = &candidate;
    }
    return site;
  }
  call = ChooseCall(error, calls);
  if (call != nullptr) site = SiteOfSpans(call->spans);
  if (site) return site;
  for (const auto& file : files_) {
    for (const PallasCallSite& candidate : file->sites()) {
      if (site) return std::nullopt;  // several: none of them is more likely
      site.emplace(file.get(), &candidate);
    }
  }
  return site;
}

void Locator::AddTraced(Site& site, const CodeError& error, const PallasCall* call) const {
  Node kernel;
  if (call != nullptr) {
    if (const LocatedFile* file = FileOf(call->kernel_span.file)) kernel = file->FunctionFrom(call->kernel_span.line);
  }
  // Python names functions in its texts with where they were defined: "outer.<locals>.<lambda>() takes …".
  constexpr std::string_view kLocals = ".<locals>.";
  std::string function;
  if (const size_t locals = error.message.find(kLocals); locals != std::string::npos) {
    const size_t start = error.message.find_last_of(" \"'(", locals);
    function = error.message.substr(start == std::string::npos ? 0 : start + 1, locals - (start + 1));
  }
  site.written = site.site->Traced(kernel, std::move(function));
}

std::optional<Place> Locator::PlaceOfKernel(const Site& site) const {
  const Node kernel = site.written.Kernel();
  if (!kernel) return std::nullopt;
  for (const auto& file : files_) {
    if (file->Holds(kernel)) return file->PlaceOfHead(kernel);
  }
  return std::nullopt;
}

std::optional<Place> Locator::PrimitivePlace(const CodeError& error, const std::vector<PallasCall>& calls) const {
  const std::string primitive = PrimitiveOf(error);
  if (primitive.empty()) return std::nullopt;
  for (const PallasCall& call : calls) {
    std::vector<const Operation*> around;
    if (!FindPrimitive(call.kernel, primitive, around)) continue;
    // A library function that is jitted itself has no user frame inside: then the operation around it counts.
    for (auto operation = around.rbegin(); operation != around.rend(); ++operation) {
      for (const SourceSpan& span : (*operation)->spans) {
        const LocatedFile* file = FileOf(span.file);
        if (file == nullptr || file->SiteAt(span.line, span.end_line) != nullptr) continue;
        return PlaceOfSpan(span);
      }
    }
  }
  return std::nullopt;
}

std::optional<Place> Locator::FramePlace(const CodeError& error, const std::vector<PallasCall>& calls,
                                         const std::optional<Site>& site) const {
  for (const std::string* text : {&error.message, &error.cause}) {
    for (const SourceSpan& span : FramesOfLocations(*text)) {
      const LocatedFile* file = FileOf(span.file);
      if (file == nullptr) continue;
      return file->PlaceOfBytes(span.line, span.column, span.end_line, span.end_column);
    }
  }
  std::vector<const SourceSpan*> frames;
  for (const SourceSpan& frame : error.frames) {
    if (FileOf(frame.file) != nullptr) frames.push_back(&frame);
  }
  const auto at_site = [&](const SourceSpan& frame) {
    return site && frame.file == site->file->source().path() &&
           site->file->SiteAt(frame.line, frame.end_line) == site->site;
  };
  const auto in_kernel = [&](const SourceSpan& frame) {
    if (at_site(frame)) return false;
    if (frame.function.find("(callsite(") != std::string::npos) return true;  // a frame that jax read from the compiler
    const LocatedFile* file = FileOf(frame.file);
    if (site && file == site->file) {
      if (const Node kernel = site->written.Kernel(); kernel && file->Covers(kernel, frame.line)) return true;
    }
    return std::any_of(calls.begin(), calls.end(), [&](const PallasCall& call) {
      if (call.kernel_span.file != frame.file) return false;
      const Node kernel = file->FunctionAround(call.kernel_span.line);
      return kernel && file->Covers(kernel, frame.line) && kernel.row() + 1 >= call.kernel_span.line;
    });
  };
  for (size_t i = 0; i < frames.size(); ++i) {
    if (!in_kernel(*frames[i])) continue;
    // Frames before it are helpers that the kernel called; but jax adds frames of lowering behind the caller's own.
    const bool behind_the_call = std::any_of(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(i),
                                             [&](const SourceSpan* frame) { return at_site(*frame); });
    if (!behind_the_call) i = 0;
    std::optional<Place> place = PlaceOfSpan(*frames[i]);
    // jax's frames of lowering have no columns; the traced operation has.
    const std::optional<Place> exact = frames[i]->column > 0 ? std::nullopt : PrimitivePlace(error, calls);
    return exact && place && exact->line == place->line ? exact : place;
  }
  if (std::optional<Place> place = PrimitivePlace(error, calls)) return place;
  return frames.empty() ? std::nullopt : PlaceOfSpan(*frames.front());
}

Locator::Found Locator::Locate(const CodeError& error, const Entry* entry, const std::vector<PallasCall>& calls,
                               Captures& captures) const {
  const PallasCall* call = nullptr;
  std::optional<Site> site = SiteOf(error, calls, call);
  if (site) AddTraced(*site, error, call);
  Found found;
  std::optional<Place> place;
  const Anchor anchor = entry == nullptr ? Anchor::kFrame : entry->anchor;
  if (site) {
    const Node kernel = site->written.Kernel();
    if (kernel)
      captures.emplace("kernel", kernel.Is("lambda") ? "the kernel" : std::string(kernel.Field("name").text()));
    const bool of_operand = anchor == Anchor::kBlockSpec || anchor == Anchor::kIndexMap;
    if (const auto operand = OperandOf(captures, site->written, call, anchor == Anchor::kBlockSpec);
        operand && of_operand) {
      captures.emplace("operand_name", OperandName(*operand, site->written, call));
    }
    if (anchor != Anchor::kFrame) place = Anchored(*entry, *site, call, captures);
  }
  if (!place) place = FramePlace(error, calls, site);
  if (!place && site) place = site->file->PlaceOf(site->site->call().Field("function"));
  if (!place && files_.size() == 1) place = Place{files_.front()->source().path(), 0, 0, 0, 0};
  if (place) found.place = *std::move(place);
  if (!site) return found;
  const Place call_place = site->file->PlaceOf(site->site->call().Field("function"));
  if (!(call_place == found.place)) found.related.push_back({call_place, "the kernel is called here"});
  const std::optional<Place> kernel_place = PlaceOfKernel(*site);
  if (kernel_place && !(*kernel_place == found.place)) found.related.push_back({*kernel_place, "the kernel"});
  return found;
}

std::string_view Locator::SourceAround(const CodeError& error, const std::vector<PallasCall>& calls) const {
  const PallasCall* call = nullptr;
  const std::optional<Site> site = SiteOf(error, calls, call);
  if (!site) return {};
  Node around = site->site->call();
  while (around && !around.Is("function_definition") && !around.Is("module")) around = around.parent();
  return around.text();
}

std::optional<Place> Locator::PlaceOfCall(const PallasCall& call) const {
  const std::optional<Site> site = SiteOfSpans(call.spans);
  if (!site) return std::nullopt;
  return site->file->PlaceOf(site->site->call().Field("function"));
}

std::optional<Place> Locator::PlaceOfBlock(const PallasCall& call, size_t block) const {
  const std::optional<Site> site = SiteOfSpans(call.spans);
  if (!site || block >= call.blocks.size()) return std::nullopt;
  OperandPath operand;
  operand.output = call.blocks[block].is_output;
  size_t inputs = 0;
  for (const BlockMapping& mapping : call.blocks) inputs += mapping.is_output ? 0 : 1;
  operand.path = {operand.output ? block - inputs : block};
  const Node spec = site->written.BlockSpec(operand);
  return spec ? std::optional<Place>(site->file->PlaceOf(spec)) : std::nullopt;
}

std::optional<Place> Locator::PlaceOfArgument(const PallasCall& call, std::string_view argument) const {
  const std::optional<Site> site = SiteOfSpans(call.spans);
  if (!site) return std::nullopt;
  const Node value = site->written.Argument(argument);
  return value ? std::optional<Place>(site->file->PlaceOf(value)) : std::nullopt;
}

}  // namespace kernelwright::diagnose
