// Results of expensive work (compiles, traces, dumps) under a key that is the hash of all that they depend on. A file
// of its own beside the store: it may grow, shrink or be thrown away without touching anyone's runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/store/sqlite.h"

namespace kernelwright::store {

struct CacheStats {
  int64_t entries = 0;
  int64_t bytes = 0;  // compressed, as stored
  int64_t limit = 0;
};

// Thread-safe; several processes may share the file.
class ContentCache {
 public:
  // Opens or makes the file. A damaged one is replaced by an empty one, since all in it can be made again; one of a
  // newer build is an error.
  static Expected<std::unique_ptr<ContentCache>> Open(const std::filesystem::path& path, uint64_t limit_bytes,
                                                      const Clock& clock = SystemClock());

  // The value, or empty: not there, or damaged, in which case the entry is removed. Counts as a use.
  std::optional<std::string> Get(const std::string& key);

  // Stores or replaces a value, then removes the least recently used ones until the limit holds. A value that is larger
  // than the limit by itself is not stored, which is no error: a cache never stops the work.
  Status Put(const std::string& key, std::string_view kind, std::string_view bytes);

  Status Remove(const std::string& key);
  Status Clear();
  Status SetLimit(uint64_t limit_bytes);
  Expected<CacheStats> Stats();

 private:
  ContentCache(Database database, uint64_t limit_bytes, const Clock& clock)
      : database_(std::move(database)), limit_(static_cast<int64_t>(limit_bytes)), clock_(clock) {}
  static Expected<Database> OpenFile(const std::filesystem::path& path);
  Status EvictLocked();
  Expected<std::optional<std::string>> GetLocked(const std::string& key);

  std::mutex mutex_;
  Database database_;
  int64_t limit_;
  const Clock& clock_;
};

}  // namespace kernelwright::store
