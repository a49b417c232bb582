// models list: which providers and models there are, whether a key is set, what is known of prices. Asks a server only
// with
// --ask.
#include <chrono>
#include <memory>
#include <optional>
#include <stop_token>

#include "daemon/base/text.h"
#include "daemon/cli/context.h"
#include "daemon/cli/interrupt.h"
#include "daemon/cli/models_flags.h"
#include "daemon/models/remote_model.h"
#include "fmt/core.h"

namespace kernelwright::cli {
namespace {

struct ListFlags {
  std::string provider;
  bool ask = false;
  ServerFlags server;
};

std::string PriceText(const models::ModelFacts& facts) {
  if (!facts.has_price()) return "unknown";
  const models::Price& price = facts.prices.front();
  std::string text = fmt::format("{:g} in, {:g} out", price.input, price.output);
  if (price.cached_input) text += fmt::format(", {:g} cached", *price.cached_input);
  if (facts.prices.size() > 1) text += fmt::format("; more from {} tokens", facts.prices[1].from_input_tokens);
  return text;
}

Json FactsJson(const models::ModelFacts& facts) {
  Json prices = Json::array();
  for (const models::Price& price : facts.prices) {
    const auto optional = [](const std::optional<double>& value) { return value ? Json(*value) : Json(); };
    prices.push_back({{"from_input_tokens", price.from_input_tokens},
                      {"input", price.input},
                      {"output", price.output},
                      {"cached_input", optional(price.cached_input)},
                      {"cache_write", optional(price.cache_write)},
                      {"cache_write_1h", optional(price.cache_write_1h)}});
  }
  const auto count = [](int64_t value) { return value == 0 ? Json() : Json(value); };
  const auto words = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"name", facts.provider + ":" + facts.id},
          {"context_tokens", count(facts.context_tokens)},
          {"max_output_tokens", count(facts.max_output_tokens)},
          {"prices", facts.has_price() ? prices : Json()},
          {"price_source", words(facts.source)},
          {"price_date", words(facts.date)}};
}

models::HttpLimits ListLimits(const Context* context) {
  models::HttpLimits limits;
  const double seconds = context->common.timeout_seconds > 0 ? context->common.timeout_seconds : 30;
  limits.deadline = Deadline::After(std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
  return limits;
}

// The models that the provider's server offers, with what is known of each.
Expected<std::vector<models::ModelFacts>> Offered(Context* context, const models::ModelCatalogue& catalogue,
                                                  const ListFlags& flags, const std::stop_token& stop) {
  models::ConnectionOptions options;
  options.base_url = flags.server.base_url;
  const Expected<models::Connection> connection =
      models::ResolveConnection(catalogue, {flags.provider, "list"}, models::ProcessEnvironment(), options);
  if (!connection) return Fail(connection.error());
  const auto transport = OpenTransport(context, flags.server);
  if (!transport) return Fail(transport.error());
  const auto offered = models::ListOfferedModels(*connection, ListLimits(context), **transport, stop);
  if (!offered) return Fail(offered.error().status);
  std::vector<models::ModelFacts> facts;
  for (const models::OfferedModel& model : *offered) {
    models::ModelFacts known = catalogue.Facts(flags.provider, model.id);
    if (model.context_tokens > 0) known.context_tokens = model.context_tokens;
    if (model.max_output_tokens > 0) known.max_output_tokens = model.max_output_tokens;
    facts.push_back(std::move(known));
  }
  return facts;
}

std::string KeyState(const models::ProviderFacts& provider) {
  const Expected<models::ApiKey> key = models::KeyFromEnvironment(provider.key_env, models::ProcessEnvironment());
  if (!key) return "unusable";
  if (!key->empty()) return "set";
  return provider.key_required ? "missing" : "none needed";
}

Expected<int> RunList(Context* context, const ListFlags& flags) {
  const Expected<models::ModelCatalogue> catalogue = ReadModelCatalogue();
  if (!catalogue) return Fail(catalogue.error());
  if (!flags.provider.empty()) {
    if (const auto provider = catalogue->Provider(flags.provider); !provider) return Fail(provider.error());
  } else if (flags.ask) {
    return Fail(ErrorKind::kUsage, "--ask needs a provider", "", "For example: kernelwright models list ollama --ask");
  }
  std::vector<models::ModelFacts> facts;
  std::stop_source stop;
  if (flags.ask) {
    const InterruptWatcher interrupts([&stop](int) { stop.request_stop(); });
    auto offered = Offered(context, *catalogue, flags, stop.get_token());
    if (!offered) return Fail(offered.error());
    facts = *std::move(offered);
  } else {
    for (const models::ModelFacts& model : catalogue->models()) {
      if (flags.provider.empty() || model.provider == flags.provider) facts.push_back(model);
    }
  }
  Json providers = Json::array();
  std::string text;
  for (const models::ProviderFacts& provider : catalogue->providers()) {
    if (!flags.provider.empty() && provider.name != flags.provider) continue;
    providers.push_back({{"name", provider.name},
                         {"title", provider.title},
                         {"protocol", provider.wire},
                         {"base_url", provider.base_url.empty() ? Json() : Json(provider.base_url)},
                         {"key_variables", provider.key_env},
                         {"key", KeyState(provider)}});
    text += PadWidth(provider.name, 12) + PadWidth("key " + KeyState(provider), 18) +
            PadWidth(Join(provider.key_env, " or "), 34) + provider.base_url + "\n";
  }
  if (context->output.json()) {
    Json list = Json::array();
    for (const models::ModelFacts& model : facts) list.push_back(FactsJson(model));
    context->output.OutJson({{"schema_version", kSchemaVersion},
                             {"command", "models list"},
                             {"providers", std::move(providers)},
                             {"models", std::move(list)}});
    return 0;
  }
  text +=
      "\nPrices in dollars per million tokens, with their date. A model that is not listed can be used; its price is "
      "unknown.\n";
  for (const models::ModelFacts& model : facts) {
    text += PadWidth(model.provider + ":" + model.id, 40) +
            PadWidth(model.context_tokens > 0 ? std::to_string(model.context_tokens) : "?", 10) +
            PadWidth(PriceText(model), 48) + model.date + "\n";
  }
  context->output.Out(text);
  return 0;
}

void AddList(CLI::App* parent, Context* context) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App* command = parent->add_subcommand("list", "Providers, whether their key is set, and models with prices");
  command->add_option("provider", flags->provider, "Only this one")->type_name("PROVIDER");
  command->add_flag("--ask", flags->ask, "Ask the provider's server what it has; tests the key");
  AddServerFlags(command, &flags->server);
  AddCommonOptions(command, context,
                   "  kernelwright models list\n  kernelwright models list anthropic --ask\n"
                   "  kernelwright models list ollama --ask --json");
  command->callback([=] { context->command = [=] { return RunList(context, *flags); }; });
}

}  // namespace

void AddModels(CLI::App* program, Context* context) {
  CLI::App* command = program->add_subcommand("models", "Language models: list them, try one");
  command->require_subcommand(1);
  command->footer(
      "Keys are read from the environment, for example ANTHROPIC_API_KEY; docs/models.md has the list.\n"
      "Without a model everything that rules can do works.");
  AddList(command, context);
  AddModelsAsk(command, context);
}

}  // namespace kernelwright::cli
