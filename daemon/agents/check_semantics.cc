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

// What a text of the judge or the interpreter means, by a part of it that stays.
struct Meaning {
  std::string_view text;
  const char* id;
};

constexpr std::array<Meaning, 4> kMeanings = {{{"Out-of-bounds block index", "D14"},
                                               {"Revisited block", "D15"},
                                               {"Out-of-bounds", "D32"},
                                               {"a race between cores", "D16"}}};

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

void Situate(const GateResult& gate, const JudgeReport& verdict, const ErrorContext& context, Diagnostic* diagnostic) {
  diagnostic->stage = diagnose::Stage::kSemantics;
  diagnostic->chips = context.chips;
  diagnostic->raw = gate.gate + ": " + gate.reason;
  const std::optional<Place> named = PlaceIn(gate.reason);
  diagnostic->place = named && IsUsers(named->file, context) ? *named : PlaceOfRun(verdict.candidate_error, context);
}

// What the static look at the kernel says about the same thing, with a better place and in the names of its refs.
std::optional<Diagnostic> FromLint(std::string_view id, const GateResult& gate, const std::vector<Diagnostic>& lints) {
  const auto lint = std::find_if(lints.begin(), lints.end(), [&](const Diagnostic& each) { return each.id == id; });
  if (lint == lints.end()) return std::nullopt;
  Diagnostic diagnostic = *lint;
  diagnostic.severity = diagnose::Severity::kError;  // the interpreter has seen it happen
  diagnostic.raw = gate.gate + ": " + gate.reason;
  return diagnostic;
}

Diagnostic Known(const Meaning& meaning, const GateResult& gate, const JudgeReport& verdict,
                 const ErrorContext& context, const std::vector<Diagnostic>& lints, const CheckRules& rules) {
  if (auto lint = FromLint(meaning.id, gate, lints)) return *std::move(lint);
  if (verdict.candidate_error) {
    for (Diagnostic& diagnostic : rules.Explain(*verdict.candidate_error, context)) {
      if (diagnostic.id == meaning.id) return std::move(diagnostic);
    }
  }
  Diagnostic diagnostic = rules.Make(meaning.id);
  diagnostic.severity = diagnose::Severity::kError;
  Situate(gate, verdict, context, &diagnostic);
  return diagnostic;
}

// Values that differ, or a kernel that the interpreter cannot run.
Diagnostic Other(const GateResult& gate, const JudgeReport& verdict, const ErrorContext& context) {
  Diagnostic diagnostic;
  Situate(gate, verdict, context, &diagnostic);
  diagnostic.page = "docs/check.md#values";
  if (gate.gate == "G43" && !verdict.candidate_error) {
    diagnostic.id = kValuesId;
    diagnostic.name = "values-differ";
    diagnostic.severity = diagnose::Severity::kWarning;  // plain evaluation does not know semaphores and copies
    diagnostic.message = "in the TPU interpreter the kernel computes other values than in plain evaluation: " +
                         Truncate(gate.reason, 400);
    diagnostic.cause =
        "Plain evaluation runs the grid in order on one core and loads every block anew; the TPU does not.";
    diagnostic.advice = "Look for a result that depends on the order of grid steps, or on memory kept between them.";
    return diagnostic;
  }
  diagnostic.id = kUnknownId;
  diagnostic.name = "not-interpreted";
  diagnostic.severity = diagnose::Severity::kInformation;
  diagnostic.message =
      "the kernel could not be run in the interpreter, so its values are not checked: " + Truncate(gate.reason, 400);
  if (verdict.candidate_error) diagnostic.raw += "\n" + verdict.candidate_error->traceback;
  return diagnostic;
}

// Whether every kernel was written elsewhere than in the user's files.
bool OfPackages(const ErrorContext& context) {
  return !context.calls.empty() &&
         std::none_of(context.calls.begin(), context.calls.end(), [&](const PallasCall& call) {
           return call.kernel_span.file.empty() || IsUsers(call.kernel_span.file, context);
         });
}

// Kernels of packages keep counters in their SMEM operands, leave results unread and read one index too many, where
// the chip does them no harm and the interpreter objects. The user cannot change them, so they get a warning.
void Soften(std::vector<Diagnostic>* diagnostics) {
  for (Diagnostic& diagnostic : *diagnostics) {
    diagnostic.severity = diagnose::Severity::kWarning;
    diagnostic.message += " The kernel is a package's: it may rely on what the chip does there.";
  }
}

Diagnostic Unwritten(const GateResult& gate, const JudgeReport& verdict, const ErrorContext& context,
                     const std::vector<Diagnostic>& lints) {
  for (const std::string_view id : kUnwrittenIds) {
    if (auto lint = FromLint(id, gate, lints)) return *std::move(lint);
  }
  Diagnostic diagnostic;
  Situate(gate, verdict, context, &diagnostic);
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
  answer.note = shapes.front().name.empty() ? "without inputs" : "at " + shapes.front().name;
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
  answer.job = static_cast<const JobReport&>(*report);
  answer.verdict = *std::move(report);
  return answer;
}

std::vector<Diagnostic> DiagnosticsOfVerdict(const JudgeReport& verdict, const ErrorContext& context,
                                             const std::vector<Diagnostic>& lints, const CheckRules& rules) {
  std::vector<Diagnostic> memory;
  std::vector<Diagnostic> others;
  for (const GateResult& gate : verdict.gates) {
    if (gate.status != GateStatus::kFail) continue;
    const auto meaning = std::find_if(kMeanings.begin(), kMeanings.end(), [&](const Meaning& each) {
      return gate.reason.find(each.text) != std::string::npos;
    });
    if (gate.gate == "G31" && gate.reason.find(kUnwritten) != std::string::npos) {
      memory.push_back(Unwritten(gate, verdict, context, lints));
    } else if (gate.gate == "G31" && meaning != kMeanings.end()) {
      memory.push_back(Known(*meaning, gate, verdict, context, lints, rules));
    } else if (gate.gate == "G42") {
      others.push_back(Known({"", "D37"}, gate, verdict, context, lints, rules));
    } else {
      others.push_back(Other(gate, verdict, context));
    }
  }
  // The other gates say what follows from it, with less detail.
  if (!memory.empty()) {
    if (OfPackages(context)) Soften(&memory);
    return memory;
  }
  // An error that shows in the graph explains values that differ.
  if (std::any_of(lints.begin(), lints.end(),
                  [](const Diagnostic& lint) { return lint.severity == diagnose::Severity::kError; })) {
    std::erase_if(others, [](const Diagnostic& diagnostic) { return diagnostic.id == kValuesId; });
  }
  if (others.size() > 1) others.resize(1);
  return others;
}

}  // namespace kernelwright::agents
