// Providers and models as data (agents/models.json): where a provider is, which variable holds its key, and what is
// known of its models: limits and prices, each with source and date. A model that is not listed can be used all the
// same; its price is then unknown, which is never the same as 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/models/message.h"
#include "daemon/models/wire.h"

namespace kernelwright::models {

// US dollars per million tokens, for prompts of at least `from_input_tokens` tokens.
struct Price {
  int64_t from_input_tokens = 0;
  double input = 0;
  double output = 0;
  std::optional<double> cached_input = std::nullopt;  // empty: as input
  std::optional<double> cache_write = std::nullopt;   // minutes; empty: as input
  std::optional<double> cache_write_1h =
      std::nullopt;  // an hour; empty: unknown, then a call that has some costs an unknown sum
};

struct ModelFacts {
  std::string provider;
  std::string id;
  int64_t context_tokens = 0;     // 0: not known
  int64_t max_output_tokens = 0;  // 0: not known
  std::optional<EffortStyle> effort;
  std::optional<StructuredOutput> structured;
  std::vector<Price> prices;  // by from_input_tokens; empty: unknown
  std::string source;         // of the prices
  std::string date;           // when they were read there: "2026-12-01"
  std::string note;

  bool has_price() const { return !prices.empty(); }
  // Dollars of a call; empty when the price or the usage is unknown.
  std::optional<double> Cost(const Usage& usage) const;
  // The most that a call with at most these tokens can cost; empty when the price is unknown.
  std::optional<double> MostCost(int64_t input_tokens, int64_t output_tokens) const;
};

struct ProviderFacts {
  std::string name;                       // "anthropic"
  std::string title;                      // "Anthropic"
  std::string wire;                       // of a WireFormat
  std::string base_url;                   // empty: must be given
  std::vector<std::string> base_url_env;  // variables that name another one
  std::vector<std::string> key_env;       // variables that hold the key; none: it wants no key
  bool key_required = true;               // false: asks without a key when there is none
  bool runs_locally = false;              // on the user's own machine: no fee
  StructuredOutput structured = StructuredOutput::kNative;
  EffortStyle effort = EffortStyle::kNone;  // of models that do not say it themselves
  bool old_token_limit = false;
  std::string note;
};

class ModelCatalogue {
 public:
  ModelCatalogue(std::vector<ProviderFacts> providers, std::vector<ModelFacts> models)
      : providers_(std::move(providers)), models_(std::move(models)) {}

  const std::vector<ProviderFacts>& providers() const { return providers_; }
  const std::vector<ModelFacts>& models() const { return models_; }
  // kUsage with the known names.
  Expected<const ProviderFacts*> Provider(std::string_view name) const;
  // What is known of a model. A dated version of a listed model ("…-20260205", "…-2026-04-23") has its facts; anything
  // else that is not listed has none. Never fails.
  ModelFacts Facts(std::string_view provider, std::string_view id) const;

  // Entries of `other` replace those of the same name here.
  ModelCatalogue MergedWith(const ModelCatalogue& other) const;

 private:
  std::vector<ProviderFacts> providers_;
  std::vector<ModelFacts> models_;
};

// Parses and validates the JSON text; `where` names it in errors. Refuses a text that holds a key: no file of ours is a
// place for one. `partial`: a user's own file, whose models may belong to providers of the built-in one.
Expected<ModelCatalogue> ParseModelCatalogue(std::string_view json, const std::string& where, bool partial = false);

// "anthropic:claude-opus-5" → provider and model, split at the first colon. Both empty for "none" and "".
struct ModelName {
  std::string provider;
  std::string model;
  bool none() const { return provider.empty(); }
};
Expected<ModelName> ParseModelName(std::string_view text);

}  // namespace kernelwright::models
