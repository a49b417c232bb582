// See roster.h.
#include "daemon/models/roster.h"

#include <algorithm>
#include <utility>

#include "daemon/base/text.h"

namespace kernelwright::models {
namespace {

std::string FullName(const ModelName& name) { return name.provider + ":" + name.model; }

}  // namespace

bool ModelChoice::none() const {
  return all.none() && std::all_of(role.begin(), role.end(), [](const auto& entry) { return entry.second.none(); });
}

Expected<ModelChoice> ParseModelChoice(std::string_view text, const std::vector<std::string>& roles) {
  ModelChoice choice;
  bool has_all = false;
  for (const std::string& part : Split(text, ',')) {
    const std::string_view word = Trim(part);
    if (word.empty()) continue;
    // The names of models may hold '=', those of roles hold no ':'.
    const size_t equals = word.find('=');
    const bool for_role = equals != std::string_view::npos && equals < word.find(':');
    Expected<ModelName> name = ParseModelName(for_role ? word.substr(equals + 1) : word);
    if (!name) return Fail(name.error());
    if (!for_role) {
      if (has_all) {
        return Fail(ErrorKind::kUsage, "two models are named for all roles", std::string(text),
                    "Name the role of one of them: planner=" + std::string(word) + ".");
      }
      has_all = true;
      choice.all = *std::move(name);
      continue;
    }
    const std::string role(Trim(word.substr(0, equals)));
    if (std::find(roles.begin(), roles.end(), role) == roles.end()) {
      const std::optional<std::string> meant = ClosestMatch(role, roles);
      return Fail(ErrorKind::kUsage, "there is no role '" + role + "'", std::string(text),
                  (meant ? "Did you mean '" + *meant + "'? " : "") + "The roles are " + Join(roles, ", ") + ".");
    }
    if (!choice.role.emplace(role, *std::move(name)).second) {
      return Fail(ErrorKind::kUsage, "the role '" + role + "' is named twice", std::string(text));
    }
  }
  return choice;
}

Expected<Roster> Roster::Make(const ModelChoice& choice, const ModelCatalogue& catalogue,
                              const Environment& environment, const std::map<std::string, ApiKey>& keys,
                              const RemoteOptions& options, Budget& budget, const Surroundings& surroundings) {
  Roster roster;
  roster.choice_ = choice;
  std::vector<ModelName> names = {choice.all};
  for (const auto& [role, name] : choice.role) names.push_back(name);
  for (const ModelName& name : names) {
    if (name.none() || roster.models_.contains(FullName(name))) continue;
    ConnectionOptions connection_options;
    if (const auto key = keys.find(name.provider); key != keys.end()) connection_options.key.emplace(key->second);
    Expected<Connection> connection = ResolveConnection(catalogue, name, environment, connection_options);
    if (!connection) return Fail(connection.error());
    roster.models_[FullName(name)] = MakeRemoteModel(*std::move(connection), options, budget, surroundings);
  }
  return roster;
}

Model* Roster::For(const std::string& role) const {
  const auto chosen = choice_.role.find(role);
  const ModelName& name = chosen == choice_.role.end() ? choice_.all : chosen->second;
  if (name.none()) return nullptr;
  const auto found = models_.find(FullName(name));
  return found == models_.end() ? nullptr : found->second.get();
}

}  // namespace kernelwright::models
