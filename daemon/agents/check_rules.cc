// See check_rules.h.
#include "daemon/agents/check_rules.h"

#include <filesystem>
#include <utility>

#include "daemon/base/files.h"
#include "daemon/diagnose/api_lint.h"
#include "daemon/diagnose/api_names.h"
#include "daemon/diagnose/block_lint.h"
#include "daemon/diagnose/catalogue.h"
#include "daemon/diagnose/explain.h"
#include "daemon/diagnose/fixes.h"
#include "daemon/diagnose/kernel_lint.h"

namespace kernelwright::agents {
namespace {

using diagnose::Diagnostic;

class DiagnoseRules final : public CheckRules {
 public:
  DiagnoseRules(diagnose::Catalogue catalogue, diagnose::ApiNames names)
      : catalogue_(std::move(catalogue)), names_(std::move(names)) {}

  std::vector<Diagnostic> LintApi(const kernels::SourceFile& source, const std::string& jax_version) const override {
    return diagnose::LintApi(source, names_, jax_version);
  }

  std::vector<Diagnostic> LintBlocks(const ErrorContext& context, const cost::Chip& chip) const override {
    return diagnose::LintBlocks(context.calls, *context.texts, chip);
  }

  std::vector<Diagnostic> LintKernels(const ErrorContext& context, const cost::Chip& chip) const override {
    std::vector<Diagnostic> found;
    for (const PallasCall& call : context.calls) {
      for (Diagnostic& diagnostic : diagnose::LintKernel(call, *context.texts, &chip)) {
        diagnostic.chips = context.chips;
        found.push_back(std::move(diagnostic));
      }
    }
    return found;
  }

  std::vector<Diagnostic> Explain(const CodeError& error, const ErrorContext& context) const override {
    // What concerns the file or its inputs is no matter of the catalogue, except for names that are gone.
    if (error.stage == "inputs" || error.stage == "resolve") return DiagnosticsOf(error, context);
    std::vector<Diagnostic> found =
        diagnose::Explain(catalogue_, error, *context.texts, context.calls, context.chips, context.stage);
    if (found.size() == 1 && found.front().id == kUnknownId) {
      Diagnostic own = DiagnosticsOf(error, context).front();
      if (own.id == kImportId || found.front().place.line == 0) return {std::move(own)};
    }
    return found;
  }

  Diagnostic Make(const std::string& id) const override { return catalogue_.Make(id); }

  std::vector<diagnose::Fix> ProposeFixes(const Diagnostic& diagnostic, const ErrorContext& context,
                                          const std::vector<const cost::Chip*>& chips) const override {
    return diagnose::ProposeFixes(diagnostic, {*context.texts, context.calls, chips});
  }

 private:
  const diagnose::Catalogue catalogue_;
  const diagnose::ApiNames names_;
};

}  // namespace

Expected<std::unique_ptr<CheckRules>> MakeCheckRules(const std::string& agents_folder) {
  const std::filesystem::path folder = agents_folder;
  auto catalogue_text = ReadFile(folder / "diagnostics.json");
  if (!catalogue_text) return Fail(catalogue_text.error());
  auto catalogue = diagnose::Catalogue::Parse(*catalogue_text);
  if (!catalogue) return Fail(catalogue.error());
  auto names_text = ReadFile(folder / "api_names.json");
  if (!names_text) return Fail(names_text.error());
  auto names = diagnose::ParseApiNames(*names_text);
  if (!names) return Fail(names.error());
  return std::make_unique<DiagnoseRules>(*std::move(catalogue), *std::move(names));
}

}  // namespace kernelwright::agents
