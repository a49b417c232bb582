// See check_rules.h.
#include "daemon/agents/check_rules.h"

namespace kernelwright::agents {
namespace {

class DiagnoseRules final : public CheckRules {
 public:
  std::vector<diagnose::Diagnostic> LintApi(const kernels::SourceFile&, const std::string&) const override {
    return {};
  }
  std::vector<diagnose::Diagnostic> LintBlocks(const ErrorContext&, const cost::Chip&) const override { return {}; }
  std::vector<diagnose::Diagnostic> LintKernels(const ErrorContext&) const override { return {}; }
  std::vector<diagnose::Diagnostic> Explain(const CodeError& error, const ErrorContext& context) const override {
    return DiagnosticsOf(error, context);
  }
  std::vector<diagnose::Fix> ProposeFixes(const diagnose::Diagnostic&, const ErrorContext&) const override {
    return {};
  }
};

}  // namespace

Expected<std::unique_ptr<CheckRules>> MakeCheckRules(const std::string&) { return std::make_unique<DiagnoseRules>(); }

}  // namespace kernelwright::agents
