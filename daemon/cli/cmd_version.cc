// version: which build this is. Asks nobody.
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"

namespace kernelwright::cli {
namespace {

Expected<int> Run(Context* context) {
  Expected<service::ClientIdentity> identity = IdentityOf(context->common);
  if (!identity) return Fail(identity.error());
  const auto& [build, protocol] = *identity;
  if (context->output.json()) {
    context->output.OutJson({{"schema_version", kSchemaVersion},
                             {"version", build.version},
                             {"build", build.build},
                             {"commit", build.commit},
                             {"protocol", {{"min", protocol.min}, {"max", protocol.max}}}});
  } else {
    context->output.Out("kernelwright " + build.ToString() + "\n");
  }
  return 0;
}

}  // namespace

void AddVersion(CLI::App* program, Context* context) {
  CLI::App* command = program->add_subcommand("version", "Which build this is");
  AddCommonOptions(command, context, "  kernelwright version\n  kernelwright version --json");
  command->callback([=] { context->command = [=] { return Run(context); }; });
}

}  // namespace kernelwright::cli
