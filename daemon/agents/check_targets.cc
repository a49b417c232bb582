// See check_targets.h.
#include "daemon/agents/check_targets.h"

#include <algorithm>
#include <set>
#include <utility>

#include "daemon/kernels/captures.h"
#include "daemon/kernels/reach.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;
using diagnose::Place;
using kernels::FunctionInfo;
using kernels::SourceFile;

Place RangePlace(const SourceFile& source, uint32_t begin, uint32_t end) {
  const kernels::SourcePosition from = source.Position(begin);
  const kernels::SourcePosition to = source.Position(end);
  return {source.path(), from.line, from.column, to.line, to.column};
}

// From `offset` to the next blank: the item of the comment that cannot be read.
Place ItemPlace(const SourceFile& source, uint32_t offset) {
  const std::string& text = source.text();
  const size_t end = std::min(text.find_first_of(" \t\r\n", offset + 1), text.size());
  return RangePlace(source, offset, static_cast<uint32_t>(end));
}

Diagnostic BadInputs(const kernels::InputsError& error, Place place) {
  Diagnostic diagnostic;
  diagnostic.id = kBadInputsId;
  diagnostic.name = "inputs-malformed";
  diagnostic.stage = diagnose::Stage::kSyntax;
  diagnostic.place = std::move(place);
  diagnostic.message = "the inputs cannot be read: " + error.message;
  diagnostic.cause = "The comment `# kernelwright:` says with which arguments the function is traced and compiled.";
  diagnostic.advice = error.remedy;
  diagnostic.page = "docs/check.md#inputs";
  return diagnostic;
}

// Adds the function as a target, or says what is wrong with its comment.
void AddFunction(const SourceFile& source, const FunctionInfo& function, const std::vector<kernels::InputSpec>& given,
                 const std::string& captures, CheckPlan& plan) {
  CheckTarget target;
  target.function = function.qualified_name;
  target.place = target.inputs_place = NamePlace(source.path(), function);
  if (!given.empty()) {
    target.inputs = given;
    target.inputs_origin = "--inputs";
  } else if (function.inputs) {
    const auto& pieces = function.inputs->pieces;
    const kernels::InputsResult parsed = kernels::ParseInputsText(function.inputs->text);
    if (const auto* error = std::get_if<kernels::InputsError>(&parsed)) {
      plan.diagnostics.push_back(BadInputs(*error, ItemPlace(source, function.inputs->FileOffset(error->offset))));
      return;
    }
    if (!pieces.empty()) {
      const size_t end =
          std::min(source.text().find_first_of("\r\n", pieces.front().file_offset), source.text().size());
      target.inputs_place = RangePlace(source, pieces.front().file_offset, static_cast<uint32_t>(end));
    }
    target.inputs = std::get<std::vector<kernels::InputSpec>>(parsed);
    target.inputs_origin = "comment";
  } else if (!kernels::SuppliesInputs(source)) {
    // A record that cannot be read is no reason to check less than without one.
    auto captured = kernels::CapturedInputs(captures, source.path(), function.qualified_name);
    if (captured && *captured && !(*captured)->empty()) {
      target.inputs = **std::move(captured);
      target.inputs_origin = "capture";
    }
  }
  plan.targets.push_back(std::move(target));
}

bool NeedsNoInputs(const FunctionInfo& function) {
  return std::all_of(function.parameters.begin(), function.parameters.end(),
                     [](const kernels::FunctionParameter& parameter) {
                       return parameter.variadic || !parameter.default_text.empty();
                     });
}

// Names of the functions that the targets use, themselves included.
std::set<std::string> Covered(const SourceFile& source, const std::vector<CheckTarget>& targets) {
  std::set<std::string> covered;
  for (const CheckTarget& target : targets) {
    covered.insert(target.function);
    auto entry = source.FindFunction(target.function);
    if (!entry) continue;
    const kernels::Reached reached = kernels::FindReachable({{&source, false, {}}}, source, *entry);
    for (const kernels::ReachedFunction& function : reached.functions) {
      covered.insert(function.function->qualified_name);
    }
  }
  return covered;
}

// Whether another function of the file leads to it, so that naming that one covers both.
bool CalledByOther(const SourceFile& source, const FunctionInfo& function) {
  return std::any_of(source.functions().begin(), source.functions().end(), [&](const FunctionInfo& other) {
    return other.top_level && other.qualified_name != function.qualified_name && !other.name.starts_with('_') &&
           source.References(other).names.contains(function.name);
  });
}

}  // namespace

Place NamePlace(const std::string& file, const FunctionInfo& function) {
  int characters = 0;
  for (const char byte : function.name) characters += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return {file, function.position.line, function.position.column, function.position.line,
          function.position.column + characters};
}

Place NamePlace(const std::string& file, const SourceFile& source, const std::string& function) {
  auto found = source.FindFunction(function);
  return found ? NamePlace(file, *found) : Place{file, 0, 0, 0, 0};
}

Diagnostic NoInputs(const std::string& function, const Place& place) {
  Diagnostic diagnostic;
  diagnostic.id = kNoInputsId;
  diagnostic.name = "inputs-missing";
  diagnostic.severity = diagnose::Severity::kInformation;
  diagnostic.stage = diagnose::Stage::kTrace;
  diagnostic.place = place;
  diagnostic.message = "the inputs of " + function + " are not known, so only its text was checked";
  diagnostic.cause = "A kernel is traced and compiled for shapes and types.";
  diagnostic.advice =
      "Write them in a comment above the function, `# kernelwright: x=bf16[4096,4096] n=8`, or give them "
      "with --inputs, or let the module have a function create_inputs().";
  diagnostic.page = "docs/check.md#inputs";
  return diagnostic;
}

Expected<CheckPlan> PlanCheck(const SourceFile& source, const CheckRequest& request, const std::string& captures) {
  CheckPlan plan;
  std::vector<kernels::InputSpec> given;
  if (!request.inputs.empty()) {
    auto inputs = kernels::ParseInputs(request.inputs, "--inputs");
    if (!inputs) return Fail(inputs.error());
    given = *std::move(inputs);
  }
  if (!request.function.empty()) {
    auto function = source.FindFunction(request.function);
    if (!function) return Fail(function.error());
    AddFunction(source, *function, given, captures, plan);
    return plan;
  }
  if (!given.empty()) {
    auto function = source.DefaultFunction();
    if (!function) return Fail(function.error());
    AddFunction(source, *function, given, captures, plan);
    return plan;
  }
  std::set<std::string> stated;  // a function defined twice counts once, as in Python
  for (const FunctionInfo& function : source.functions()) {
    if (!function.inputs || !stated.insert(function.qualified_name).second) continue;
    auto last = source.FindFunction(function.qualified_name);
    AddFunction(source, last && last->inputs ? *last : function, {}, captures, plan);
  }
  for (const FunctionInfo& function : source.functions()) {
    if (function.inputs || stated.contains(function.qualified_name)) continue;
    const auto captured = kernels::CapturedInputs(captures, source.path(), function.qualified_name);
    if (!captured || !*captured) continue;
    stated.insert(function.qualified_name);
    AddFunction(source, function, {}, captures, plan);
  }
  if (stated.empty()) {
    auto function = source.DefaultFunction();
    if (function && source.ReachesPallasCall(*function) &&
        (kernels::SuppliesInputs(source) || NeedsNoInputs(*function))) {
      AddFunction(source, *function, {}, captures, plan);
    }
  }
  const std::set<std::string> covered = Covered(source, plan.targets);
  std::set<std::string> told;
  for (const FunctionInfo& function : source.functions()) {
    const bool open = function.top_level && !function.name.starts_with('_') &&
                      !stated.contains(function.qualified_name) && !covered.contains(function.qualified_name) &&
                      source.ReachesPallasCall(function) && !CalledByOther(source, function);
    if (open && told.insert(function.qualified_name).second) {
      plan.diagnostics.push_back(NoInputs(function.qualified_name, NamePlace(source.path(), function)));
    }
  }
  return plan;
}

}  // namespace kernelwright::agents
