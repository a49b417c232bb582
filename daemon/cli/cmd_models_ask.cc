// models ask: one question to a model, from this process, with the key of this process's environment; no daemon takes
// part.
#include <chrono>
#include <iostream>
#include <iterator>
#include <memory>
#include <stop_token>

#include "daemon/base/clock.h"
#include "daemon/base/files.h"
#include "daemon/base/text.h"
#include "daemon/base/units.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/models_flags.h"
#include "daemon/models/json_schema.h"
#include "daemon/models/remote_model.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

struct AskFlags {
  std::string model;
  std::string prompt;
  std::string system;
  std::string schema_file;
  std::string tools_file;
  int64_t max_tokens = 0;
  std::string effort = "default";
  bool no_stream = false;
  bool show_request = false;
  double idle_seconds = 0;
  double budget_usd = -1;
  int64_t budget_tokens = -1;
  ServerFlags server;
};

Expected<std::string> ReadPrompt(const std::string& given) {
  if (given != "-") return given;
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

Expected<models::Request> BuildRequest(const AskFlags& flags) {
  models::Request request;
  request.system = flags.system;
  request.max_output_tokens = flags.max_tokens;
  for (const models::Effort effort : {models::Effort::kLow, models::Effort::kMedium, models::Effort::kHigh}) {
    if (flags.effort == models::EffortName(effort)) request.effort = effort;
  }
  Expected<std::string> prompt = ReadPrompt(flags.prompt);
  if (!prompt) return Fail(prompt.error());
  if (Trim(*prompt).empty())
    return Fail(ErrorKind::kUsage, "there is nothing to ask", "",
                "Give a prompt, or - to read it from standard input.");
  if (!IsValidUtf8(*prompt)) return Fail(ErrorKind::kUsage, "the prompt is not UTF-8");
  request.messages.push_back(models::Message::User(*std::move(prompt)));
  const auto read_json = [](const std::string& file) -> Expected<Json> {
    const Expected<std::string> text = ReadFile(file, size_t{1} << 20);
    if (!text) return Fail(text.error());
    return ParseJson(*text, file);
  };
  if (!flags.schema_file.empty()) {
    Expected<Json> schema = read_json(flags.schema_file);
    if (!schema) return Fail(schema.error());
    if (const Status good = models::CheckSchema(*schema); !good.ok()) {
      return Fail(ErrorKind::kUsage, good.message(), flags.schema_file + ": " + good.where());
    }
    request.output = models::OutputSchema{"answer", *std::move(schema)};
  }
  if (!flags.tools_file.empty()) {
    const Expected<Json> tools = read_json(flags.tools_file);
    if (!tools) return Fail(tools.error());
    const JsonReader reader(*tools, flags.tools_file + ": $");
    const auto elements = reader.Elements();
    if (!elements) return Fail(elements.error());
    for (const JsonReader& tool : *elements) {
      const Expected<std::string> name = tool.String("name");
      const Expected<std::string> description = tool.StringOr("description", "");
      const Expected<JsonReader> parameters = tool.At("parameters");
      if (!name) return Fail(name.error());
      if (!description) return Fail(description.error());
      if (!parameters) return Fail(parameters.error());
      request.tools.push_back({*name, *description, parameters->value()});
    }
  }
  return request;
}

// Shows an answer while it comes on a terminal, and says why it is asked again.
models::OnStream Show(Context* context, bool* shown) {
  return [context, shown](const models::StreamEvent& event) {
    if (event.kind == models::StreamEvent::Kind::kWait) {
      context->output.Note((*shown ? "\n" : "") + std::string("asking again in ") +
                           FormatDuration(std::chrono::milliseconds(event.wait_ms)) + ": " + event.text);
      *shown = false;
    } else if (event.kind == models::StreamEvent::Kind::kText && context->output.out_style().live &&
               !context->output.json()) {
      context->output.Out(SanitizeUtf8(event.text));
      *shown = true;
    }
  };
}

Json CallsJson(const models::Message& message) {
  Json calls = Json::array();
  for (const models::ToolCall& call : message.ToolCalls()) {
    calls.push_back({{"id", call.id},
                     {"name", call.name},
                     {"arguments", call.arguments},
                     {"malformed", call.malformed.empty() ? Json() : Json(call.malformed)}});
  }
  return calls;
}

int PrintFailure(Context* context, const models::Failure& failure, const models::Budget& budget) {
  const Status& status = failure.error.status;
  context->output.Note("error: " + status.ToString());
  if (context->output.json()) {
    Json object = ErrorObject(status);
    object["command"] = "models ask";
    object["cause"] = models::CauseName(failure.error.cause);
    object["continue_at"] =
        failure.error.continue_at_ms > 0 ? Json(FormatTimeUtc(failure.error.continue_at_ms)) : Json();
    object["record"] = ToJson(failure.record);
    object["spent"] = ToJson(budget.spent());
    context->output.OutJson(object);
  }
  return ExitCode(status.kind());
}

std::string RecordLine(const models::CallRecord& record) {
  std::string text = FormatDuration(std::chrono::milliseconds(record.milliseconds));
  if (record.usage.known) {
    text += fmt::format(", {} tokens in ({} cached), {} out", record.usage.input_tokens,
                        record.usage.cached_input_tokens, record.usage.output_tokens);
  }
  return text + (record.usd ? fmt::format(", ${:.6f}", *record.usd) : ", cost unknown");
}

// How long the whole call may take.
Deadline CallDeadline(const CommonOptions& common) {
  double seconds = common.timeout_seconds;
  if (common.budget_seconds > 0 && (seconds <= 0 || common.budget_seconds < seconds)) seconds = common.budget_seconds;
  if (seconds <= 0) return Deadline::Never();
  return Deadline::After(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
}

Expected<int> RunAsk(Context* context, const AskFlags& flags) {
  const Expected<models::ModelCatalogue> catalogue = ReadModelCatalogue();
  if (!catalogue) return Fail(catalogue.error());
  const Expected<models::ModelName> name = models::ParseModelName(flags.model);
  if (!name) return Fail(name.error());
  if (name->none()) return Fail(ErrorKind::kUsage, "no model was chosen", "", "Name one: --model PROVIDER:MODEL.");
  const Expected<models::Request> request = BuildRequest(flags);
  if (!request) return Fail(request.error());
  models::ConnectionOptions options;
  options.base_url = flags.server.base_url;
  options.stream = !flags.no_stream;
  options.need_key = !flags.show_request;
  Expected<models::Connection> connection =
      models::ResolveConnection(*catalogue, *name, models::ProcessEnvironment(), options);
  if (!connection) return Fail(connection.error());
  if (flags.show_request) {
    const models::HttpRequest http = connection->wire->Build(connection->endpoint, *request);
    const Expected<Json> body = ParseJson(http.body);
    context->output.OutJson({{"schema_version", kSchemaVersion},
                             {"command", "models ask"},
                             {"method", http.method},
                             {"url", http.url},
                             {"headers", http.headers},
                             {"body", body ? *body : Json()}});
    return 0;
  }
  const auto transport = OpenTransport(context, flags.server);
  if (!transport) return Fail(transport.error());
  models::BudgetLimits limits;
  if (flags.budget_usd >= 0) limits.usd = flags.budget_usd;
  if (flags.budget_tokens >= 0) limits.tokens = flags.budget_tokens;
  models::Budget budget(limits);
  models::RemoteOptions remote;
  if (flags.idle_seconds > 0) {
    remote.limits.idle = std::chrono::milliseconds(static_cast<int64_t>(flags.idle_seconds * 1000));
    remote.limits.first_byte = remote.limits.idle;
  }
  models::Surroundings around;
  around.transport = transport->get();
  const auto model = models::MakeRemoteModel(*std::move(connection), remote, budget, around);

  std::stop_source stop;
  bool shown = false;
  const models::AskResult answer = [&] {
    const InterruptWatcher interrupts([&stop](int) { stop.request_stop(); });
    return model->Ask(
        *request,
        {.stop = stop.get_token(), .deadline = CallDeadline(context->common), .on_stream = Show(context, &shown)});
  }();
  if (!answer) return PrintFailure(context, answer.error(), budget);
  const models::Reply& reply = answer->reply;
  Json value;
  Status problem;
  if (request->output) {
    Expected<Json> read = models::ReadStructured(reply.message.Text(), request->output->schema);
    if (read) {
      value = *std::move(read);
    } else {
      problem = read.error();
    }
  }
  if (context->output.json()) {
    context->output.OutJson({{"schema_version", kSchemaVersion},
                             {"command", "models ask"},
                             {"model", model->Name()},
                             {"text", reply.message.Text()},
                             {"value", value},
                             {"value_error", problem.ok() ? Json() : Json(problem.message())},
                             {"tool_calls", CallsJson(reply.message)},
                             {"stop", models::StopReasonName(reply.stop)},
                             {"record", ToJson(answer->record)},
                             {"spent", ToJson(budget.spent())},
                             {"exit_code", problem.ok() ? 0 : ExitCode(problem.kind())}});
  } else {
    context->output.Out(shown ? "\n" : SanitizeUtf8(reply.message.Text()) + "\n");
    for (const models::ToolCall& call : reply.message.ToolCalls()) {
      context->output.Out("call " + call.name + " " + SanitizeUtf8(call.raw) + "\n");
    }
    context->output.Note(model->Name() + ": " + RecordLine(answer->record));
    if (!problem.ok()) context->output.Note("error: " + problem.ToString());
  }
  return problem.ok() ? 0 : ExitCode(problem.kind());
}

}  // namespace

void AddModelsAsk(CLI::App* parent, Context* context) {
  auto flags = std::make_shared<AskFlags>();
  CLI::App* command = parent->add_subcommand("ask", "Ask a model one question; shows time, tokens and cost");
  command->add_option("prompt", flags->prompt, "The question; - reads it from standard input")
      ->type_name("TEXT")
      ->required();
  command->add_option("--model", flags->model, "PROVIDER:MODEL")->type_name("NAME")->required();
  command->add_option("--system", flags->system, "Instructions for the model")->type_name("TEXT");
  command->add_option("--schema", flags->schema_file, "JSON schema that the answer must match")->type_name("FILE");
  command->add_option("--tools", flags->tools_file, "Tools that it may call: a list of name, description, parameters")
      ->type_name("FILE");
  command->add_option("--max-tokens", flags->max_tokens, "Limit of the answer")->check(CLI::PositiveNumber);
  command->add_option("--effort", flags->effort, "How long it may think")
      ->check(CLI::IsMember({"default", "low", "medium", "high"}))
      ->capture_default_str();
  command->add_option("--budget-usd", flags->budget_usd, "Do not ask if it could cost more")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--budget-tokens", flags->budget_tokens, "Do not ask if it could take more")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--no-stream", flags->no_stream, "Wait for the whole answer");
  command->add_flag("--show-request", flags->show_request, "Print what would be sent, without the key, and stop");
  AddDuration(command, "--idle", &flags->idle_seconds, "Give up when nothing comes for this long");
  AddServerFlags(command, &flags->server);
  AddCommonOptions(
      command, context,
      "  kernelwright models ask --model anthropic:claude-haiku-4-5 'Say hello'\n"
      "  kernelwright models ask --model ollama:qwen3:8b - <question.txt\n"
      "  kernelwright models ask --model gemini:gemini-3.8-flash --schema answer.json --json 'Which tile?'");
  command->callback([=] { context->command = [=] { return RunAsk(context, *flags); }; });
}

}  // namespace kernelwright::cli
