// Puts the engine together: store, cache, chips, workers. The only place that knows all of them.
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>
#include <variant>

#include "daemon/agents/engine.h"
#include "daemon/agents/local_engine.h"
#include "daemon/base/files.h"
#include "daemon/base/hash.h"
#include "daemon/base/lock_file.h"
#include "daemon/kernels/captures.h"
#include "daemon/service/build_identity.h"
#include "daemon/store/content_cache.h"
#include "daemon/worker/provider.h"

namespace kernelwright::agents {
namespace {

constexpr uint64_t kCacheLimitBytes = uint64_t{2} << 30;

class CompileCache : public BlobCache {
 public:
  explicit CompileCache(std::unique_ptr<store::ContentCache> cache) : cache_(std::move(cache)) {}
  std::optional<std::string> Get(const std::string& key) override { return cache_->Get(key); }
  void Put(const std::string& key, const std::string& blob) override {
    // A cache that cannot store costs a compile later, nothing else.
    (void)cache_->Put(key, "compile", blob);
  }

 private:
  std::unique_ptr<store::ContentCache> cache_;
};

uint64_t FileBytes(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  if (auto bytes = RandomBytes(sizeof seed)) std::memcpy(&seed, bytes->data(), sizeof seed);
  return seed;
}

}  // namespace

Expected<std::unique_ptr<Engine>> MakeEngine(const EngineOptions& options) {
  // A table that `calibrate` wrote, for machines whose chips were measured.
  const char* own_table = std::getenv("KERNELWRIGHT_CHIPS");
  const bool own = own_table != nullptr && *own_table != '\0';
  auto chips_text = ReadFile(own ? std::filesystem::path(own_table) : options.agents_folder / "chips.json");
  if (!chips_text) return Fail(chips_text.error());
  auto chips = cost::ParseChips(*chips_text);
  if (!chips) return Fail(chips.error());

  LocalEngineParts parts;
  if (options.exclusive) {
    // The socket's lock is per runtime folder, and two login sessions may have two of those: only one daemon may drive
    // the runs of a store.
    if (Status made = MakePrivateFolder(options.state_folder); !made.ok()) return Fail(made);
    auto attempt = LockFile::TryLock(options.state_folder / "daemon.lock");
    if (!attempt) return Fail(attempt.error());
    if (const auto* held = std::get_if<LockFile::Held>(&*attempt)) {
      return Fail(
          ErrorKind::kConflict, "the daemon " + std::to_string(held->pid) + " drives the runs of this store",
          options.state_folder.string(),
          "It was started with another XDG_RUNTIME_DIR: use that one, or end it with `kernelwright stop` there.");
    }
    parts.store_lock = std::make_unique<LockFile>(std::get<LockFile>(*std::move(attempt)));
  }
  const std::filesystem::path store_path = options.state_folder / "runs.sqlite";
  auto store = store::Store::Open(store_path);
  if (!store) return Fail(store.error());
  parts.store = *std::move(store);

  if (Status made = MakePrivateFolder(options.cache_folder); !made.ok()) return Fail(made);
  const std::filesystem::path cache_path = options.cache_folder / "compiles.sqlite";
  auto cache = store::ContentCache::Open(cache_path, kCacheLimitBytes);
  if (!cache) return Fail(cache.error());
  parts.cache = std::make_unique<CompileCache>(*std::move(cache));

  parts.parallel = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  worker::LocalOptions local;
  local.agents_folder = options.agents_folder;
  local.proto_python_folder = options.proto_python_folder;
  local.parallel_jobs = static_cast<uint32_t>(parts.parallel);
  parts.toolchains = worker::MakeLocalToolchains(local);
  auto rules = MakeCheckRules(options.agents_folder.string());
  if (!rules) return Fail(rules.error());
  parts.check_rules = *std::move(rules);
  parts.chips = *std::move(chips);
  parts.build = service::ThisBuild().ToString();
  parts.captures = kernels::CapturesFolder(options.state_folder).string();
  parts.random_seed = RandomSeed;
  parts.stored_bytes = [store_path, cache_path] { return FileBytes(store_path) + FileBytes(cache_path); };
  return MakeLocalEngine(std::move(parts));
}

}  // namespace kernelwright::agents
