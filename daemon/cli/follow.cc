// Live progress and final screen; see follow.h.
#include "daemon/cli/follow.h"

#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <stop_token>

#include "daemon/cli/apply_edits.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/json_read.h"
#include "daemon/cli/progress.h"
#include "daemon/cli/result_view.h"

namespace kernelwright::cli {
namespace {

void ToStderr(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

Status Interrupted(const std::string& run) {
  return Status(ErrorKind::kCancelled, "the run was interrupted: its daemon ended", "run " + run,
                "What was found is kept; continue with 'kernelwright runs resume " + run + "'.");
}

}  // namespace

Status FollowRun(Context* context, service::Client* client, const std::string& run, uint64_t since,
                 OnInterrupt on_interrupt) {
  std::mutex mutex;  // over the view and standard error: events and signals come on different threads
  Progress progress(context->output.error_style());
  std::stop_source leave;
  Status watched;
  {
    const InterruptWatcher interrupts([&](int count) {
      if (on_interrupt == OnInterrupt::kDetach) {
        leave.request_stop();
        return;
      }
      if (count > 1) {
        // The second one must work even when nothing else does.
        ToStderr(progress.Close() + "kernelwright: left before the run " + run + " had ended\n");
        ::_exit(ExitCode(ErrorKind::kCancelled));
      }
      {
        const std::lock_guard lock(mutex);
        ToStderr(progress.Say("cancelling; what was found is kept (Ctrl-C again leaves at once)"));
      }
      const Expected<bool> cancelled = client->CancelRun(run);
      if (!cancelled) {
        const std::lock_guard lock(mutex);
        ToStderr(progress.Say("kernelwright: the run could not be cancelled: " + cancelled.error().ToString()));
      }
    });
    watched = client->WatchEvents(
        run, since, /*follow=*/true,
        [&](const agents::RunEvent& event) {
          const std::lock_guard lock(mutex);
          ToStderr(progress.Apply(event));
          return true;
        },
        leave.get_token());
  }
  const bool finished = progress.finished();
  ToStderr(progress.Close());
  if (leave.stop_requested()) {
    return Status(ErrorKind::kCancelled, "left; the run goes on", "run " + run,
                  "See it with 'kernelwright runs watch " + run + "'.");
  }
  if (!watched.ok()) {
    if (watched.kind() != ErrorKind::kInternal) return watched;
    return Status(watched.kind(), watched.message(), "run " + run,
                  "What was found is kept; continue with 'kernelwright runs resume " + run + "'.");
  }
  return finished ? Status() : Interrupted(run);
}

Expected<int> ShowRun(Context* context, service::Client* client, const std::string& run, const ShowOptions& show) {
  const Expected<agents::RunInfo> info = client->GetRun(run);
  if (!info) return Fail(info.error());
  if (info->result_json.empty()) {
    if (info->status == "running") {
      return Fail(ErrorKind::kConflict, "the run has not ended", "run " + info->run,
                  "Follow it with 'kernelwright runs watch " + info->run + "'.");
    }
    return Fail(Interrupted(info->run));
  }
  const nlohmann::json result = nlohmann::json::parse(info->result_json, nullptr, /*allow_exceptions=*/false);
  if (!result.is_object()) {
    return Fail(ErrorKind::kInternal, "the stored result is damaged", "run " + info->run,
                "'kernelwright runs export " + info->run + "' still has its events.");
  }
  Output& output = context->output;
  Status applied;
  nlohmann::json edits = nlohmann::json::array();
  if (show.apply) {
    Expected<nlohmann::json> chosen = ChooseEdits(result, show.chip);
    if (!chosen) {
      applied = chosen.error();
    } else {
      edits = std::move(*chosen);
      const Expected<std::vector<Edit>> parsed = EditsFromJson(edits);
      applied = parsed ? ApplyEdits(*parsed, info->run) : parsed.error();
    }
  }
  bool written = true;
  if (output.json()) {
    // The error of --apply belongs into the one object that is printed.
    nlohmann::json object = result;
    if (show.apply) {
      object["applied"] = applied.ok() && !edits.empty();
      if (!applied.ok()) object["apply_error"] = ErrorObject(applied)["error"];
    }
    written = output.OutJson(object);
  } else if (show.diff) {
    ToStderr(RenderResult(result, output.error_style(), /*with_diff=*/false));
    written = output.Out(RenderDiff(result, show.chip, output.out_style()));
  } else {
    written = output.Out(RenderResult(result, output.out_style()));
    if (!show.apply && Text(result, "status") == "improved") {
      output.Note("Apply it with: kernelwright runs show " + info->run + " --apply");
    }
  }
  if (!applied.ok()) {
    if (!output.json()) return Fail(applied);
    output.Note("kernelwright: error: " + applied.ToString());
    return ExitCode(applied.kind());
  }
  if (show.apply) {
    for (const nlohmann::json& edit : edits) output.Note("applied to " + Text(edit, "file"));
    if (edits.empty()) output.Note("nothing to apply: the original stays as it is");
  }
  if (!written) {
    return Fail(ErrorKind::kEnvironment, "standard output cannot be written", "",
                "Free space where it goes to, then: kernelwright runs show " + info->run);
  }
  return info->exit_code;
}

}  // namespace kernelwright::cli
