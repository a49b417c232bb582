// See check_semantics.h. The function is judged against itself: its kernels in the TPU interpreter, with memory that
// holds NaN until it is written and two cores that race, against the same program evaluated plainly.
#include "daemon/agents/check_semantics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "daemon/agents/check_shapes.h"
#include "daemon/base/text.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Place;

constexpr int64_t kFullElements = int64_t{1} << 18;     // of all inputs: below, nothing is reduced …
constexpr int64_t kFullSteps = 256;                     // … when no kernel has more grid steps
constexpr int64_t kLargestElements = int64_t{1} << 22;  // full size all the same when no smaller shape stands for it
const std::vector<uint64_t> kSeeds = {20'231, 77'003};  // of inputs and of the interpreter's schedules

int64_t Elements(const std::vector<kernels::InputSpec>& inputs) {
  int64_t total = 0;
  for (const kernels::InputSpec& input : inputs) {
    int64_t elements = input.kind == kernels::InputSpec::Kind::kTensor ? 1 : 0;
    for (const int64_t dim : input.dims) elements *= dim;
    total += elements;
  }
  return total;
}

int64_t LargestGrid(const std::vector<PallasCall>& calls) {
  int64_t largest = 1;
  for (const PallasCall& call : calls) {
    int64_t steps = 1;
    for (const int64_t bound : call.grid) steps *= std::max<int64_t>(bound, 1);
    largest = std::max(largest, steps);
  }
  return largest;
}

// What a text of the interpreter means, by a part of it that stays.
struct Meaning {
  std::string_view text;
  std::string_view id;
  std::string_view name;
  std::string_view message;
  std::string_view cause;
  std::string_view advice;
};

constexpr std::array<Meaning, 4> kMeanings = {{
    {"Out-of-bounds block index", "D14", "map-elements", "an index map names a block outside of the array",
     "An index map returns numbers of blocks, not of elements; what lies outside is not memory of the array.",
     "Drop the factor of the block size from the index map, or use pl.Element for offsets in elements."},
    {"Revisited block", "D15", "revisit", "an output block is left and visited again later",
     "A block of the output is written back when the grid moves on, and is not loaded again: what was in it is lost.",
     "Let the grid axes that do not move the output block be the last ones, in the grid, the index maps and the "
     "program ids."},
    {"Out-of-bounds", "D32", "slice-overrun", "a slice inside the kernel passes the end of its array",
     "Tails of a BlockSpec are padded; a slice with pl.ds is not, and on the TPU it reads or writes foreign memory.",
     "Pad the array to a multiple of the slice, or clamp the start and mask the rest."},
    {"a race between cores", "D16", "parallel-reduction",
     "steps of the grid that may run at the same time touch the same memory",
     "Steps along an axis marked \"parallel\" have no order and may run on two cores at once.",
     "Mark the axis \"arbitrary\" in dimension_semantics, or let the output's index map use every parallel axis."},
}};

constexpr std::string_view kUnwritten = "memory that nothing has written";
constexpr std::array<std::string_view, 5> kUnwrittenIds = {"D34", "D33", "D30", "D17", "D31"};

// "…/file.py:12:5" inside a text of the judge.
std::optional<Place> PlaceIn(std::string_view text) {
  for (size_t at = text.find(".py:"); at != std::string_view::npos; at = text.find(".py:", at + 1)) {
    const size_t begin = text.rfind(' ', at);
    Place place;
    place.file = std::string(text.substr(begin == std::string_view::npos ? 0 : begin + 1,
                                         at + 3 - (begin == std::string_view::npos ? 0 : begin + 1)));
    while (!place.file.empty() && place.file.front() != '/') place.file.erase(0, 1);
    const char* end = text.data() + text.size();
    const auto line = std::from_chars(text.data() + at + 4, end, place.line);
    if (line.ec != std::errc() || place.line <= 0 || place.file.empty()) continue;
    if (line.ptr != end && *line.ptr == ':') std::from_chars(line.ptr + 1, end, place.column);
    place.column = std::max(place.column, 0);
    place.end_line = place.line;
    place.end_column = place.column > 0 ? place.column + 1 : 0;
    return place;
  }
  return std::nullopt;
}

bool IsUsers(const std::string& file, const ErrorContext& context) {
  return context.texts != nullptr && context.texts->contains(file);
}

// The innermost frame of an error that is the user's, else the first kernel's pallas_call, else the function's name.
Place PlaceOfRun(const std::optional<CodeError>& error, const ErrorContext& context) {
  if (error) {
    for (const SourceSpan& frame : error->frames) {
      if (frame.line > 0 && IsUsers(frame.file, context)) {
        return {frame.file, frame.line, frame.column, frame.end_line, frame.end_column};
      }
    }
  }
  for (const PallasCall& call : context.calls) {
    for (const SourceSpan& span : call.spans) {
      if (span.line > 0 && IsUsers(span.file, context)) {
        return {span.file, span.line, span.column, span.end_line, span.end_column};
      }
    }
  }
  return context.target != nullptr ? context.target->place : Place{context.file, 0, 0, 0, 0};
}

Diagnostic Base(const GateResult& gate, const JudgeReport& verdict, const ErrorContext& context) {
  Diagnostic diagnostic;
  diagnostic.stage = diagnose::Stage::kSemantics;
  diagnostic.chips = context.chips;
  diagnostic.raw = gate.gate + ": " + gate.reason;
  const std::optional<Place> named = PlaceIn(gate.reason);
  diagnostic.place = named && IsUsers(named->file, context) ? *named : PlaceOfRun(verdict.candidate_error, context);
  return diagnostic;
}

Diagnostic Unwritten(const GateResult& gate, const JudgeReport& verdict, const ErrorContext& context,
                     const std::vector<Diagnostic>& lints) {
  for (const std::string_view id : kUnwrittenIds) {
    const auto lint = std::find_if(lints.begin(), lints.end(), [&](const Diagnostic& each) { return each.id == id; });
    if (lint == lints.end()) continue;
    Diagnostic diagnostic = *lint;
    diagnostic.severity = diagnose::Severity::kError;  // the interpreter has seen it happen
    diagnostic.raw = gate.gate + ": " + gate.reason;
    return diagnostic;
  }
  Diagnostic diagnostic = Base(gate, verdict, context);
  diagnostic.id = kUnwrittenId;
  diagnostic.name = "unwritten-memory";
  diagnostic.message = "the result depends on memory that nothing has written";
  diagnostic.cause =
      "Outputs and scratch start with whatever the chip's memory held, and what pads a tail is undefined; "
      "the interpreter fills both with NaN, and NaN came out.";
  diagnostic.advice =
      "Look for an accumulator that no first step zeroes, a tail that enters a sum, a grid that does not "
      "cover the output, and a copy that nobody waits for.";
  diagnostic.page = "docs/check.md#unwritten";
  return diagnostic;
}

}  // namespace

Expected<SemanticsAnswer> RunSemantics(const SemanticsQuestion& question, Toolchain& toolchain,
                                       const std::stop_token& stop) {
  SemanticsAnswer answer;
  const int64_t elements = Elements(question.inputs);
  const CheckShape full{kernels::FormatInputs(question.inputs), question.inputs};
  std::vector<CheckShape> shapes;
  if (elements <= kFullElements && LargestGrid(question.calls) <= kFullSteps) {
    shapes.push_back(full);
  } else {
    Program program = question.program;
    FrozenReference frozen;
    frozen.original = frozen.reference = question.source;
    frozen.inputs = question.inputs;
    frozen.ladder = ProposeCheckShapes(question.inputs, program, question.calls, false);
    auto choice = ChooseShapes(frozen, frozen.ladder, question.source.files, question.calls, question.chip, toolchain,
                               question.limits, stop);
    if (!choice) return Fail(choice.error());
    shapes = std::move(choice->shapes);
    if (shapes.empty() && elements <= kLargestElements && LargestGrid(question.calls) <= kFullSteps) {
      shapes.push_back(full);
    }
    if (shapes.empty()) {
      answer.note = "no smaller shape stands for the full size: " + choice->why_none;
      return answer;
    }
  }
  answer.note = "at " + shapes.front().name;
  JudgeRequest request;
  request.candidate = request.reference = question.source;
  request.shapes = std::move(shapes);
  request.seeds = kSeeds;
  request.chip = question.chip;
  request.reference_only = true;
  request.limits = question.limits;
  auto report = toolchain.Judge(request, stop);
  if (!report) return Fail(report.error());
  answer.ran = report->outcome == JobOutcome::kDone;
  answer.job = *report;
  answer.verdict = *std::move(report);
  return answer;
}

std::vector<Diagnostic> DiagnosticsOfVerdict(const JudgeReport& verdict, const ErrorContext& context,
                                             const std::vector<Diagnostic>& lints) {
  std::vector<Diagnostic> found;
  const auto failed = [&](std::string_view id) {
    return std::any_of(verdict.gates.begin(), verdict.gates.end(),
                       [&](const GateResult& gate) { return gate.gate == id && gate.status == GateStatus::kFail; });
  };
  for (const GateResult& gate : verdict.gates) {
    if (gate.status != GateStatus::kFail) continue;
    if (gate.reason.find(kUnwritten) != std::string::npos) {
      found.push_back(Unwritten(gate, verdict, context, lints));
      continue;
    }
    const auto meaning = std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& each) {
      return gate.reason.find(each.text) != std::string::npos;
    });
    if (meaning != kMeanings.end() && gate.gate == "G31") {
      Diagnostic diagnostic = Base(gate, verdict, context);
      diagnostic.id = meaning->id;
      diagnostic.name = meaning->name;
      diagnostic.message = meaning->message;
      diagnostic.cause = meaning->cause;
      diagnostic.advice = meaning->advice;
      diagnostic.page = "docs/diagnostics/" + diagnostic.id + ".md";
      found.push_back(std::move(diagnostic));
      continue;
    }
    // Other gates that fail together with G31 only say the same with less detail.
    if (gate.gate != "G31" && (failed("G31") || !found.empty())) continue;
    Diagnostic diagnostic = Base(gate, verdict, context);
    if (gate.gate == "G42") {
      diagnostic.id = "D37";
      diagnostic.name = "input-write";
      diagnostic.message = "an input is changed by the call";
      diagnostic.cause = "Inputs are read-only: other code may hold the same array.";
      diagnostic.advice = "Alias the input with input_output_aliases, or copy it to scratch first.";
      diagnostic.page = "docs/diagnostics/D37.md";
    } else {
      diagnostic.id = gate.gate == "G43" && !verdict.candidate_error ? kValuesId : kUnknownId;
      diagnostic.name = gate.gate == "G43" && !verdict.candidate_error ? "values-differ" : "unknown";
      diagnostic.message = gate.gate == "G43" && !verdict.candidate_error
                               ? "in the TPU interpreter the kernel computes other values than in plain evaluation"
                               : "the kernel does not run in the TPU interpreter";
      diagnostic.message += ": " + Truncate(gate.reason, 400);
      diagnostic.page = "docs/check.md#values";
    }
    found.push_back(std::move(diagnostic));
  }
  return found;
}

}  // namespace kernelwright::agents
