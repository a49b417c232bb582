// Which model does what in a run: one for all sub-agents, or strong ones for plans and cheap ones for fixes. All share
// the budget of the run.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/models/budget.h"
#include "daemon/models/catalogue.h"
#include "daemon/models/model.h"
#include "daemon/models/remote_model.h"

namespace kernelwright::models {

struct ModelChoice {
  ModelName all;                          // of every role that is not named; none: rules only
  std::map<std::string, ModelName> role;  // "planner" -> model, or none
  bool none() const;                      // no role has a model
};

// "anthropic:a", "none", "anthropic:a,debugger=ollama:b,tester=none", "planner=gemini:c". kUsage for a role that is not
// among `roles`, or named twice.
Expected<ModelChoice> ParseModelChoice(std::string_view text, const std::vector<std::string>& roles);

class Roster {
 public:
  // Resolves every model that is chosen; an error names the first that cannot be used. `keys`: by provider, in place of
  // the environment's. `budget` and what `surroundings` names must outlive the roster.
  static Expected<Roster> Make(const ModelChoice& choice, const ModelCatalogue& catalogue,
                               const Environment& environment, const std::map<std::string, ApiKey>& keys,
                               const RemoteOptions& options, Budget& budget, const Surroundings& surroundings);

  // The model of a role; null when it works by rules.
  Model* For(const std::string& role) const;

 private:
  ModelChoice choice_;
  std::map<std::string, std::unique_ptr<Model>>
      models_;  // by "provider:model": a model is one object, however often used
};

}  // namespace kernelwright::models
