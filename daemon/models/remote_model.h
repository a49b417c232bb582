// A model on a server: builds the request, keeps the budget, sends it, reads the answer while it comes, and asks again
// where that can help.
#pragma once

#include <memory>
#include <string>

#include "daemon/base/clock.h"
#include "daemon/models/api_key.h"
#include "daemon/models/budget.h"
#include "daemon/models/catalogue.h"
#include "daemon/models/http.h"
#include "daemon/models/model.h"
#include "daemon/models/retry.h"
#include "daemon/models/wire.h"

namespace kernelwright::models {

struct RemoteOptions {
  RetryPolicy retry;
  HttpLimits limits;                         // its deadline is not used: that of the call is
  std::chrono::milliseconds total{900'000};  // for a call, when the caller gives no earlier deadline
  int64_t least_output_tokens = 512;         // a budget that leaves less does not make the call
  bool grow_output = true;                   // an answer that was cut for length is asked again once with more room
};

// What the outside world is for a model; all must outlive it.
struct Surroundings {
  Transport* transport = nullptr;
  const Clock* clock = &SystemClock();
  Sleeper* sleeper = &SystemSleeper();
  RandomSource* random = &SystemRandom();
};

// Where and as whom to ask; made by ResolveEndpoint.
struct Connection {
  const WireFormat* wire = nullptr;
  Endpoint endpoint;
  ModelFacts facts;
  ApiKey key;

  // Empty without a key.
  SecretHeader KeyHeader() const;
};

struct ConnectionOptions {
  std::string base_url;       // instead of the provider's
  std::optional<ApiKey> key;  // instead of the environment's
  bool stream = true;
  bool need_key = true;  // false: for looking at a request that is not sent
};

// From "provider:model" to all that is needed to ask it. kUsage for unknown names, kEnvironment for a missing key. A
// key is only ever sent over TLS or to this machine.
Expected<Connection> ResolveConnection(const ModelCatalogue& catalogue, const ModelName& name,
                                       const Environment& environment, const ConnectionOptions& options);

// The models that the server offers.
CallResult<std::vector<OfferedModel>> ListOfferedModels(const Connection& connection, const HttpLimits& limits,
                                                        Transport& transport, const std::stop_token& stop);

// `budget` may be shared by several models and must outlive the model.
std::unique_ptr<Model> MakeRemoteModel(Connection connection, RemoteOptions options, Budget& budget,
                                       Surroundings surroundings);

}  // namespace kernelwright::models
