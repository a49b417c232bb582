// doctor: what the environment offers, and what to do about what it lacks.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <stop_token>

#include "daemon/base/clock.h"
#include "daemon/base/units.h"
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/target.h"
#include "daemon/service/stray_daemons.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using agents::DoctorItem;

DoctorItem DaemonItem(service::Client* client) {
  const service::Peer peer = client->peer();
  const auto status = client->GetStatus();
  std::string value = peer.in_process ? "none needed: --in-process" : "process " + std::to_string(peer.pid);
  value += ", " + peer.build.ToString();
  if (status) {
    value += ", up " + FormatDuration(std::chrono::milliseconds(status->uptime_ms)) + ", " +
             FormatBytes(status->resident_bytes) + " of memory, " + std::to_string(status->engine.active_runs) +
             " active runs";
  }
  return {"daemon", "ok", value, ""};
}

// A daemon that cannot be had is a finding like any other; the rest of the examination goes on without it.
Expected<std::unique_ptr<service::Client>> OpenAnyClient(Context* context, std::vector<DoctorItem>* items) {
  auto client = OpenClient(context);
  if (client || context->common.in_process) {
    if (client) items->push_back(DaemonItem(client->get()));
    return client;
  }
  items->push_back({"daemon", "error", client.error().message(), client.error().remedy()});
  context->common.in_process = true;
  return OpenClient(context);
}

void AddStrays(std::vector<DoctorItem>* items) {
  for (const service::StrayDaemon& stray : service::FindStrayDaemons(service::RuntimeEnvironment::FromProcess())) {
    items->push_back(
        {"other daemon", "warning",
         "process " + std::to_string(stray.pid) + " serves from " + stray.folder.string() + ": " + stray.why,
         "It ends by itself when idle; to end it now: kill " + std::to_string(stray.pid)});
  }
}

std::string Render(const std::vector<DoctorItem>& items, const Style& style) {
  size_t width = 4;
  for (const DoctorItem& item : items) width = std::max(width, DisplayWidth(item.name));
  std::string text;
  for (const DoctorItem& item : items) {
    const char* color = item.status == "ok" ? "32" : item.status == "warning" ? "33" : "31";
    text += Paint(style, color, PadWidth(item.status, 9)) + PadWidth(item.name, width + 2) + item.value + "\n";
    if (item.status != "ok" && !item.remedy.empty())
      text += std::string(9 + width + 2, ' ') + "→ " + item.remedy + "\n";
  }
  return text;
}

Expected<int> Run(Context* context, const std::string& file) {
  agents::DoctorOptions options;
  if (!file.empty()) {
    Expected<Target> target = ParseTarget(file);
    if (!target) return Fail(target.error());
    options.file = target->file;
  }
  options.python = context->common.python;
  options.chips = context->common.chips;
  options.working_directory = std::filesystem::current_path().string();
  options.environment = InterpreterEnvironment();
  options.sandbox = context->common.sandbox;

  std::vector<DoctorItem> items;
  auto client = OpenAnyClient(context, &items);
  if (!client) return Fail(client.error());
  AddStrays(&items);
  std::stop_source stop;
  {
    const InterruptWatcher interrupts([&stop](int) { stop.request_stop(); });
    const auto found = (*client)->Doctor(options, stop.get_token());
    if (!found) return Fail(found.error());
    items.insert(items.end(), found->begin(), found->end());
  }
  std::string worst = "ok";
  for (const DoctorItem& item : items) {
    if (item.status == "error" || (item.status == "warning" && worst == "ok")) worst = item.status;
  }
  if (context->output.json()) {
    nlohmann::json list = nlohmann::json::array();
    for (const DoctorItem& item : items) {
      list.push_back({{"name", item.name}, {"status", item.status}, {"value", item.value}, {"remedy", item.remedy}});
    }
    context->output.OutJson({{"schema_version", kSchemaVersion}, {"status", worst}, {"items", list}});
  } else {
    context->output.Out(Render(items, context->output.out_style()));
  }
  return worst == "error" ? ExitCode(ErrorKind::kEnvironment) : 0;
}

}  // namespace

void AddDoctor(CLI::App* program, Context* context) {
  auto file = std::make_shared<std::string>();
  CLI::App* command = program->add_subcommand("doctor", "Look at interpreter, compiler, chips, sandbox and daemon");
  command->add_option("file", *file, "File whose interpreter is meant")->type_name("FILE.py");
  AddCommonOptions(command, context,
                   "  kernelwright doctor\n  kernelwright doctor kernels/matmul.py --chip v5e,v6e\n"
                   "  kernelwright doctor --python .venv/bin/python --json");
  command->callback([=] { context->command = [=] { return Run(context, *file); }; });
}

}  // namespace kernelwright::cli
