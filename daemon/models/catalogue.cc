// See catalogue.h.
#include "daemon/models/catalogue.h"

#include <algorithm>
#include <cctype>

#include "daemon/base/redact.h"
#include "daemon/base/text.h"

namespace kernelwright::models {
namespace {

constexpr double kPerMillion = 1e-6;

// "-20260205", "-2026-04-23", "@20260205": how providers name a dated version.
bool IsDateSuffix(std::string_view suffix) {
  if (suffix.empty() || (suffix.front() != '-' && suffix.front() != '@')) return false;
  std::string digits;
  for (char c : suffix.substr(1)) {
    if (c == '-') continue;
    if (std::isdigit(static_cast<unsigned char>(c)) == 0) return false;
    digits += c;
  }
  return digits.size() == 8 && digits.starts_with("20");
}

const Price* PriceFor(const std::vector<Price>& prices, int64_t input_tokens) {
  const Price* found = nullptr;
  for (const Price& price : prices) {
    if (input_tokens >= price.from_input_tokens) found = &price;
  }
  return found;
}

Expected<double> Money(const JsonReader& reader, const std::string& key) {
  Expected<double> value = reader.Double(key);
  if (!value) return value;
  if (*value < 0 || *value > 1e5) {
    return Fail(ErrorKind::kUsage, "a price is dollars per million tokens, from 0 to 100000",
                reader.path() + "." + key);
  }
  return value;
}

Expected<std::optional<double>> OptionalMoney(const JsonReader& reader, const std::string& key) {
  if (!reader.Has(key)) return std::optional<double>();
  const Expected<double> value = Money(reader, key);
  if (!value) return Fail(value.error());
  return std::optional<double>(*value);
}

Expected<Price> ReadPrice(const JsonReader& reader) {
  const Expected<int64_t> from = reader.IntOr("from_input_tokens", 0);
  const Expected<double> input = Money(reader, "input");
  const Expected<double> output = Money(reader, "output");
  const auto cached = OptionalMoney(reader, "cached_input");
  const auto written = OptionalMoney(reader, "cache_write");
  const auto written_1h = OptionalMoney(reader, "cache_write_1h");
  if (!from) return Fail(from.error());
  if (!input) return Fail(input.error());
  if (!output) return Fail(output.error());
  if (!cached) return Fail(cached.error());
  if (!written) return Fail(written.error());
  if (!written_1h) return Fail(written_1h.error());
  return Price{*from, *input, *output, *cached, *written, *written_1h};
}

Expected<EffortStyle> ReadEffort(const std::string& text, const std::string& where) {
  if (text == "none") return EffortStyle::kNone;
  if (text == "level") return EffortStyle::kLevel;
  if (text == "budget") return EffortStyle::kBudget;
  return Fail(ErrorKind::kUsage, "`effort` is none, level or budget, not '" + text + "'", where);
}

Expected<StructuredOutput> ReadStructured(const std::string& text, const std::string& where) {
  if (text == "native") return StructuredOutput::kNative;
  if (text == "prompt") return StructuredOutput::kPrompt;
  return Fail(ErrorKind::kUsage, "`structured` is native or prompt, not '" + text + "'", where);
}

Expected<ModelFacts> ReadModel(const JsonReader& reader) {
  ModelFacts facts;
  const Expected<std::string> provider = reader.String("provider");
  const Expected<std::string> id = reader.String("id");
  const Expected<int64_t> context = reader.IntOr("context_tokens", 0);
  const Expected<int64_t> output = reader.IntOr("max_output_tokens", 0);
  const Expected<std::string> source = reader.StringOr("source", "");
  const Expected<std::string> date = reader.StringOr("date", "");
  const Expected<std::string> note = reader.StringOr("note", "");
  for (const auto* text : {&provider, &id, &source, &date, &note}) {
    if (!*text) return Fail(text->error());
  }
  if (!context) return Fail(context.error());
  if (!output) return Fail(output.error());
  facts.provider = *provider;
  facts.id = *id;
  facts.context_tokens = *context;
  facts.max_output_tokens = *output;
  facts.source = *source;
  facts.date = *date;
  facts.note = *note;
  if (reader.Has("effort")) {
    const Expected<EffortStyle> effort = ReadEffort(reader.String("effort").value_or(""), reader.path());
    if (!effort) return Fail(effort.error());
    facts.effort = *effort;
  }
  if (reader.Has("structured")) {
    const Expected<StructuredOutput> structured =
        ReadStructured(reader.String("structured").value_or(""), reader.path());
    if (!structured) return Fail(structured.error());
    facts.structured = *structured;
  }
  if (reader.Has("prices")) {
    const auto prices = reader.At("prices").and_then([](const JsonReader& list) { return list.Elements(); });
    if (!prices) return Fail(prices.error());
    for (const JsonReader& element : *prices) {
      Expected<Price> price = ReadPrice(element);
      if (!price) return Fail(price.error());
      if (!facts.prices.empty() && price->from_input_tokens <= facts.prices.back().from_input_tokens) {
        return Fail(ErrorKind::kUsage, "prices must be in rising order of from_input_tokens", element.path());
      }
      facts.prices.push_back(*price);
    }
    if (!facts.prices.empty() && facts.prices.front().from_input_tokens != 0) {
      return Fail(ErrorKind::kUsage, "the first price must start at 0 input tokens", reader.path());
    }
    if (!facts.prices.empty() && (facts.source.empty() || facts.date.empty())) {
      return Fail(ErrorKind::kUsage, "a price needs its `source` and `date`", reader.path());
    }
  }
  return facts;
}

Expected<ProviderFacts> ReadProvider(const JsonReader& reader) {
  ProviderFacts facts;
  const Expected<std::string> name = reader.String("name");
  const Expected<std::string> title = reader.StringOr("title", name.value_or(""));
  const Expected<std::string> wire = reader.String("wire");
  const Expected<std::string> url = reader.StringOr("base_url", "");
  const Expected<std::string> structured = reader.StringOr("structured", "native");
  const Expected<std::string> effort = reader.StringOr("effort", "none");
  const Expected<std::string> note = reader.StringOr("note", "");
  for (const auto* text : {&name, &title, &wire, &url, &structured, &effort, &note}) {
    if (!*text) return Fail(text->error());
  }
  if (FindWireFormat(*wire) == nullptr) {
    return Fail(ErrorKind::kUsage, "there is no wire format '" + *wire + "'", reader.path(),
                "It is gemini, anthropic or openai.");
  }
  const Expected<bool> required = reader.BoolOr("key_required", true);
  const Expected<bool> local = reader.BoolOr("runs_locally", false);
  const Expected<bool> old_limit = reader.BoolOr("old_token_limit", false);
  for (const auto* flag : {&required, &local, &old_limit}) {
    if (!*flag) return Fail(flag->error());
  }
  for (const auto& [key, list] : {std::pair{"key_env", &facts.key_env}, {"base_url_env", &facts.base_url_env}}) {
    if (!reader.Has(key)) continue;
    Expected<std::vector<std::string>> names = reader.Strings(key);
    if (!names) return Fail(names.error());
    *list = *std::move(names);
  }
  const Expected<StructuredOutput> structured_kind = ReadStructured(*structured, reader.path());
  if (!structured_kind) return Fail(structured_kind.error());
  const Expected<EffortStyle> effort_style = ReadEffort(*effort, reader.path());
  if (!effort_style) return Fail(effort_style.error());
  facts.name = *name;
  facts.title = *title;
  facts.wire = *wire;
  facts.base_url = *url;
  facts.key_required = *required && !facts.key_env.empty();
  facts.runs_locally = *local;
  facts.structured = *structured_kind;
  facts.effort = *effort_style;
  facts.old_token_limit = *old_limit;
  facts.note = *note;
  return facts;
}

// A key in a file ends up in a repository sooner or later, so a file that holds one is refused as a whole.
Status RefuseKeys(const Json& value, const std::string& path, const std::string& where) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    if (Redactor().Redact(text) != text) {
      return Status(ErrorKind::kUsage, "this looks like a key (" + path + "), and no file is a place for one", where,
                    "Put it into the provider's environment variable, and take this one out of use.");
    }
    return {};
  }
  if (!value.is_structured()) return {};
  for (const auto& [key, member] : value.items()) {
    const std::string name = ReplaceAll(ToLowerAscii(key), "-", "_");
    if (value.is_object() && (name == "api_key" || name == "apikey" || name == "key" || name == "token" ||
                              name == "secret" || name == "password" || name == "authorization")) {
      return Status(ErrorKind::kUsage, "there is no field for a key (" + path + "." + key + ")", where,
                    "Put the key into the provider's environment variable; `key_env` names it.");
    }
    if (Status clean = RefuseKeys(member, path + "." + key, where); !clean.ok()) return clean;
  }
  return {};
}

}  // namespace

std::optional<double> ModelFacts::Cost(const Usage& usage) const {
  const Price* price = PriceFor(prices, usage.input_tokens);
  if (price == nullptr || !usage.known) return std::nullopt;
  if (usage.cache_write_1h_tokens > 0 && !price->cache_write_1h) return std::nullopt;
  const int64_t plain = std::max<int64_t>(
      0, usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens - usage.cache_write_1h_tokens);
  return kPerMillion * (static_cast<double>(plain) * price->input +
                        static_cast<double>(usage.cached_input_tokens) * price->cached_input.value_or(price->input) +
                        static_cast<double>(usage.cache_write_tokens) * price->cache_write.value_or(price->input) +
                        static_cast<double>(usage.cache_write_1h_tokens) * price->cache_write_1h.value_or(0) +
                        static_cast<double>(usage.output_tokens) * price->output);
}

std::optional<double> ModelFacts::MostCost(int64_t input_tokens, int64_t output_tokens) const {
  if (prices.empty()) return std::nullopt;
  double most = 0;
  for (const Price& price : prices) {
    if (price.from_input_tokens > input_tokens) continue;
    const double input = std::max(price.input, price.cache_write.value_or(0));
    most = std::max(most, kPerMillion * (static_cast<double>(input_tokens) * input +
                                         static_cast<double>(output_tokens) * price.output));
  }
  return most;
}

Expected<const ProviderFacts*> ModelCatalogue::Provider(std::string_view name) const {
  std::vector<std::string> names;
  for (const ProviderFacts& provider : providers_) {
    if (provider.name == name) return &provider;
    names.push_back(provider.name);
  }
  const std::optional<std::string> meant = ClosestMatch(name, names);
  return Fail(ErrorKind::kUsage, "there is no provider '" + std::string(name) + "'", {},
              (meant ? "Did you mean '" + *meant + "'? " : "") + "The providers are " + Join(names, ", ") +
                  ". A model is named PROVIDER:MODEL.");
}

ModelFacts ModelCatalogue::Facts(std::string_view provider, std::string_view id) const {
  ModelFacts facts;
  for (const ModelFacts& model : models_) {
    if (model.provider != provider) continue;
    if (model.id == id) {
      facts = model;
      break;
    }
    if (id.starts_with(model.id) && IsDateSuffix(id.substr(model.id.size()))) facts = model;
  }
  facts.provider = provider;
  facts.id = id;
  for (const ProviderFacts& known : providers_) {
    if (known.name != provider) continue;
    if (!facts.effort) facts.effort = known.effort;
    if (!facts.structured) facts.structured = known.structured;
    if (known.runs_locally && facts.prices.empty()) {
      facts.prices.push_back({0, 0, 0, 0, 0, 0});
      facts.source = "the model runs on the user's own machine";
    }
  }
  return facts;
}

ModelCatalogue ModelCatalogue::MergedWith(const ModelCatalogue& other) const {
  ModelCatalogue merged = *this;
  for (const ProviderFacts& provider : other.providers_) {
    std::erase_if(merged.providers_, [&](const ProviderFacts& known) { return known.name == provider.name; });
    merged.providers_.push_back(provider);
  }
  for (const ModelFacts& model : other.models_) {
    std::erase_if(merged.models_,
                  [&](const ModelFacts& known) { return known.provider == model.provider && known.id == model.id; });
    merged.models_.push_back(model);
  }
  return merged;
}

Expected<ModelCatalogue> ParseModelCatalogue(std::string_view json, const std::string& where, bool partial) {
  const Expected<Json> parsed = ParseJson(json, where);
  if (!parsed) return Fail(parsed.error());
  if (Status clean = RefuseKeys(*parsed, "$", where); !clean.ok()) return Fail(clean);
  const JsonReader reader(*parsed, where + ": $");
  const Expected<int64_t> version = reader.Int("version");
  if (!version) return Fail(version.error());
  if (*version != 1)
    return Fail(ErrorKind::kUsage, "version " + std::to_string(*version) + " is not known here", where);
  std::vector<ProviderFacts> providers;
  std::vector<ModelFacts> models;
  if (reader.Has("providers")) {
    const auto list = reader.At("providers").and_then([](const JsonReader& all) { return all.Elements(); });
    if (!list) return Fail(list.error());
    for (const JsonReader& element : *list) {
      Expected<ProviderFacts> provider = ReadProvider(element);
      if (!provider) return Fail(provider.error());
      providers.push_back(*std::move(provider));
    }
  }
  if (reader.Has("models")) {
    const auto list = reader.At("models").and_then([](const JsonReader& all) { return all.Elements(); });
    if (!list) return Fail(list.error());
    for (const JsonReader& element : *list) {
      Expected<ModelFacts> model = ReadModel(element);
      if (!model) return Fail(model.error());
      const bool known = std::any_of(providers.begin(), providers.end(),
                                     [&](const ProviderFacts& provider) { return provider.name == model->provider; });
      if (!known && !partial) {
        return Fail(ErrorKind::kUsage, "no provider is named '" + model->provider + "'", element.path());
      }
      models.push_back(*std::move(model));
    }
  }
  return ModelCatalogue(std::move(providers), std::move(models));
}

Expected<ModelName> ParseModelName(std::string_view text) {
  text = Trim(text);
  if (text.empty() || text == "none") return ModelName();
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) {
    return Fail(ErrorKind::kUsage, "'" + std::string(text) + "' names no model", {},
                "Write PROVIDER:MODEL, for example anthropic:claude-opus-5, or none.");
  }
  return ModelName{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

}  // namespace kernelwright::models
