// runs list, show, watch, resume, export, prune.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

#include "daemon/base/clock.h"
#include "daemon/base/files.h"
#include "daemon/base/units.h"
#include "daemon/cli/connection.h"
#include "daemon/cli/context.h"
#include "daemon/cli/follow.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

using nlohmann::json;

struct Flags {
  std::string run;
  uint32_t limit = 50;
  uint64_t since = 0;
  bool events = false;
  std::string output;
  double older_than_seconds = 0;
  uint32_t keep = 0;
  bool dry_run = false;
  ShowOptions show;
};

json RunObject(const agents::RunInfo& run) {
  return {{"run", run.run},
          {"kind", run.kind},
          {"status", run.status},
          {"file", run.file},
          {"function", run.function},
          {"chips", run.chips},
          {"created", FormatTimeUtc(run.created_ms)},
          {"updated", FormatTimeUtc(run.updated_ms)},
          {"candidates", run.candidates},
          {"speedup", run.speedup > 0 ? json(run.speedup) : json()}};
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

Expected<int> ListRuns(Context* context, const Flags& flags) {
  auto client = OpenClient(context);
  if (!client) return Fail(client.error());
  const auto runs = (*client)->ListRuns(flags.limit);
  if (!runs) return Fail(runs.error());
  if (context->output.json()) {
    json list = json::array();
    for (const agents::RunInfo& run : *runs) list.push_back(RunObject(run));
    context->output.OutJson({{"schema_version", kSchemaVersion}, {"runs", list}});
    return 0;
  }
  if (runs->empty()) {
    context->output.Note("no runs yet: start one with 'kernelwright optimize FILE.py::function'");
    return 0;
  }
  size_t id_width = 3;
  for (const agents::RunInfo& run : *runs) id_width = std::max(id_width, run.run.size());
  std::string text = PadWidth("run", id_width + 2) + PadWidth("started (UTC)", 21) + PadWidth("kind", 10) +
                     PadWidth("status", 16) + PadWidth("tried", 7) + PadWidth("best", 9) + PadWidth("chips", 12) +
                     "function\n";
  for (const agents::RunInfo& run : *runs) {
    text += PadWidth(run.run, id_width + 2) + PadWidth(FormatTimeUtc(run.created_ms).substr(0, 19), 21) +
            PadWidth(run.kind, 10) + PadWidth(run.status, 16) + PadWidth(std::to_string(run.candidates), 7) +
            PadWidth(run.speedup > 0 ? fmt::format("{:.2f}x", run.speedup) : "-", 9) + PadWidth(Joined(run.chips), 12) +
            run.function + " in " + run.file + "\n";
  }
  context->output.Out(text);
  return 0;
}

Expected<int> Show(Context* context, const Flags& flags) {
  auto client = OpenClient(context);
  if (!client) return Fail(client.error());
  ShowOptions show = flags.show;
  if (context->common.chips.size() == 1) show.chip = context->common.chips.front();
  return ShowRun(context, client->get(), flags.run, show);
}

// One line of JSON for each event, as it comes.
Expected<int> PrintEvents(Context* context, service::Client* client, const Flags& flags) {
  bool written = true;
  const Status watched = client->WatchEvents(
      flags.run, flags.since, /*follow=*/true,
      [&](const agents::RunEvent& event) {
        const json object = {{"schema_version", kSchemaVersion},
                             {"sequence", event.sequence},
                             {"run", event.run},
                             {"time", FormatTimeUtc(event.time_ms)},
                             {"kind", event.kind},
                             {"payload", json::parse(event.payload_json, nullptr, /*allow_exceptions=*/false)}};
        written = context->output.Out(object.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
        return written;
      },
      {});
  if (!watched.ok()) return Fail(watched);
  return 0;
}

Expected<int> Watch(Context* context, const Flags& flags) {
  auto client = OpenClient(context);
  if (!client) return Fail(client.error());
  if (flags.events) return PrintEvents(context, client->get(), flags);
  if (Status s = FollowRun(context, client->get(), flags.run, flags.since, OnInterrupt::kDetach); !s.ok()) {
    return Fail(s);
  }
  return ShowRun(context, client->get(), flags.run, flags.show);
}

Expected<int> Resume(Context* context, const Flags& flags) {
  auto client = OpenClient(context);
  if (!client) return Fail(client.error());
  // The events so far were shown when they came.
  uint64_t last = 0;
  const Status read = (*client)->WatchEvents(flags.run, 0, /*follow=*/false,
                                             [&](const agents::RunEvent& event) {
                                               last = std::max(last, event.sequence);
                                               return true;
                                             },
                                             {});
  if (!read.ok()) return Fail(read);
  const Expected<std::string> run = (*client)->ResumeRun(flags.run);
  if (!run) return Fail(run.error());
  if (Status s = FollowRun(context, client->get(), *run, last, OnInterrupt::kCancelRun); !s.ok()) return Fail(s);
  return ShowRun(context, client->get(), *run, flags.show);
}

Expected<int> Export(Context* context, const Flags& flags) {
  auto client = OpenClient(context);
  if (!client) return Fail(client.error());
  if (flags.output.empty()) {
    bool written = true;
    const Status exported =
        (*client)->ExportRun(flags.run, [&](std::string_view part) { return written = context->output.Out(part); });
    if (!exported.ok()) return Fail(exported);
    if (!written) return Fail(ErrorKind::kEnvironment, "standard output cannot be written");
    return 0;
  }
  std::string text;
  const Status exported = (*client)->ExportRun(flags.run, [&](std::string_view part) {
    text += part;
    return true;
  });
  if (!exported.ok()) return Fail(exported);
  // Whole or not at all: a half document would look like a damaged run.
  if (Status written = WriteFileAtomically(flags.output, text); !written.ok()) return Fail(written);
  if (context->output.json()) {
    context->output.OutJson({{"schema_version", kSchemaVersion}, {"file", flags.output}, {"bytes", text.size()}});
  } else {
    context->output.Note("wrote " + flags.output + " (" + FormatBytes(text.size()) + ")");
  }
  return 0;
}

Expected<int> Prune(Context* context, const Flags& flags, bool has_rule) {
  if (!has_rule) {
    return Fail(ErrorKind::kUsage, "nothing says which runs to delete", "runs prune",
                "Give --older-than, --keep, or both; --dry-run only counts.");
  }
  auto client = OpenClient(context);
  if (!client) return Fail(client.error());
  const agents::PruneOptions options{std::llround(flags.older_than_seconds), flags.keep, flags.dry_run};
  const auto result = (*client)->PruneRuns(options);
  if (!result) return Fail(result.error());
  if (context->output.json()) {
    context->output.OutJson({{"schema_version", kSchemaVersion},
                             {"runs", result->runs},
                             {"freed_bytes", result->freed_bytes},
                             {"dry_run", flags.dry_run}});
    return 0;
  }
  context->output.Out(fmt::format("{} {} {}, {}\n", flags.dry_run ? "would delete" : "deleted", result->runs,
                                  result->runs == 1 ? "run" : "runs", FormatBytes(result->freed_bytes)));
  return 0;
}

void AddRunArgument(CLI::App* command, Flags* flags) {
  command->add_option("run", flags->run, "Id of the run, or a unique beginning of it")->required()->type_name("RUN");
}

void AddShowFlags(CLI::App* command, Flags* flags) {
  auto* diff = command->add_flag("--diff", flags->show.diff, "Print only the diff on standard output");
  auto* apply =
      command->add_flag("--apply", flags->show.apply, "Write the best candidate into the file, if it is unchanged");
  diff->excludes(apply);
}

}  // namespace

void AddRuns(CLI::App* program, Context* context) {
  CLI::App* runs = program->add_subcommand("runs", "Runs in the store: list, show, watch, resume, export, prune");
  runs->require_subcommand(1);
  const auto flags = std::make_shared<Flags>();
  runs->footer("Examples:\n  kernelwright runs list\n  kernelwright runs show RUN --diff");

  CLI::App* list = runs->add_subcommand("list", "The newest runs");
  list->add_option("--limit", flags->limit, "How many")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->type_name("N");
  AddCommonOptions(list, context, "  kernelwright runs list --limit 10\n  kernelwright runs list --json");
  list->callback([=] { context->command = [=] { return ListRuns(context, *flags); }; });

  CLI::App* show = runs->add_subcommand("show", "A run's result; --apply puts it into the file");
  AddRunArgument(show, flags.get());
  AddShowFlags(show, flags.get());
  AddCommonOptions(show, context,
                   "  kernelwright runs show RUN\n  kernelwright runs show RUN --diff | git apply\n"
                   "  kernelwright runs show RUN --apply --chip v6e");
  show->callback([=] { context->command = [=] { return Show(context, *flags); }; });

  CLI::App* watch = runs->add_subcommand("watch", "Attach to a run; Ctrl-C leaves it running");
  AddRunArgument(watch, flags.get());
  watch->add_option("--since", flags->since, "Only events after this number")->type_name("N");
  watch->add_flag("--events", flags->events, "Print each event as a line of JSON on standard output");
  AddCommonOptions(watch, context,
                   "  kernelwright runs watch RUN\n  kernelwright runs watch RUN --events --since 120 | jq .kind");
  watch->callback([=] { context->command = [=] { return Watch(context, *flags); }; });

  CLI::App* resume = runs->add_subcommand("resume", "Take up an interrupted or cancelled run");
  AddRunArgument(resume, flags.get());
  AddShowFlags(resume, flags.get());
  AddCommonOptions(resume, context, "  kernelwright runs resume RUN\n  kernelwright runs resume RUN --apply");
  resume->callback([=] { context->command = [=] { return Resume(context, *flags); }; });

  CLI::App* exported = runs->add_subcommand("export", "Everything about a run as one JSON document");
  AddRunArgument(exported, flags.get());
  exported->add_option("-o,--output", flags->output, "File to write; default: standard output")->type_name("FILE");
  AddCommonOptions(exported, context,
                   "  kernelwright runs export RUN > run.json\n  kernelwright runs export RUN -o run.json");
  exported->callback([=] { context->command = [=] { return Export(context, *flags); }; });

  CLI::App* prune = runs->add_subcommand("prune", "Delete old runs; never a running one");
  auto* older = AddDuration(prune, "--older-than", &flags->older_than_seconds, "Runs older than this, e.g. 30d");
  auto* keep = prune->add_option("--keep", flags->keep, "The newest runs that stay in any case")->type_name("N");
  prune->add_flag("--dry-run", flags->dry_run, "Only count");
  AddCommonOptions(prune, context,
                   "  kernelwright runs prune --older-than 30d --dry-run\n  kernelwright runs prune --keep 20");
  prune->callback([=] {
    const bool has_rule = older->count() > 0 || keep->count() > 0;
    context->command = [=] { return Prune(context, *flags, has_rule); };
  });
}

}  // namespace kernelwright::cli
