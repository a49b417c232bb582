// See content_cache.h.
#include "daemon/store/content_cache.h"

#include "daemon/base/files.h"
#include "daemon/base/gzip.h"
#include "daemon/base/lock_file.h"
#include "daemon/base/log.h"
#include "daemon/store/schema.h"

namespace kernelwright::store {
namespace {

constexpr size_t kMaxValueBytes = size_t{512} << 20;  // below SQLite's limit for one value
// A use is written down at most once in this time: a hit would cost a write otherwise.
constexpr int64_t kUseGranularityMs = 1000;

bool IsDamaged(const Status& status) { return status.message().starts_with("the database is damaged"); }

}  // namespace

Expected<Database> ContentCache::OpenFile(const std::filesystem::path& path) {
  Expected<Database> database = Database::Open(path, Database::Mode::kReadWriteCreate);
  if (!database) return database;
  Status status = Migrate(*database, CacheMigrations(), kCacheApplicationId);
  // quick_check finds torn pages before they are met in the middle of work.
  if (status) {
    Expected<Statement> check = database->Query("PRAGMA quick_check(1)");
    Expected<bool> row = check ? check->Step() : Expected<bool>(Fail(check.error()));
    if (!row) {
      status = row.error();
    } else if (check->Text(0) != "ok") {
      status = SqliteStatus(SQLITE_CORRUPT, check->Text(0), path.string());
    }
  }
  // NORMAL: after a power cut the last entries may be missing, which a cache can bear.
  if (status) status = database->Execute("PRAGMA synchronous = NORMAL");
  if (!status) return Fail(std::move(status));
  return database;
}

Expected<std::unique_ptr<ContentCache>> ContentCache::Open(const std::filesystem::path& path, uint64_t limit_bytes,
                                                           const Clock& clock) {
  if (path.has_parent_path()) {
    std::error_code error;
    if (!std::filesystem::exists(path.parent_path(), error)) {
      if (Status status = MakePrivateFolder(path.parent_path()); !status) return Fail(std::move(status));
    }
  }
  // Held while a damaged file is replaced, so that two processes do not remove each other's new one.
  Expected<LockFile> lock = LockFile::Lock(path.string() + ".lock", Deadline::After(std::chrono::seconds(30)));
  if (!lock) return Fail(lock.error());
  Expected<Database> database = OpenFile(path);
  if (!database && IsDamaged(database.error())) {
    LogWarning("the cache is damaged and starts empty: {}", database.error().ToString());
    for (const char* suffix : {"", "-wal", "-shm"}) {
      if (Status status = RemoveTree(path.string() + suffix); !status) return Fail(std::move(status));
    }
    database = OpenFile(path);
  }
  if (!database) return Fail(database.error());
  return std::unique_ptr<ContentCache>(new ContentCache(*std::move(database), limit_bytes, clock));
}

Expected<std::optional<std::string>> ContentCache::GetLocked(const std::string& key) {
  std::string packed;
  int64_t raw_size = 0;
  int64_t last_used = 0;
  {
    Expected<Statement> entry = database_.Query("SELECT bytes, raw_size, last_used FROM cache WHERE key = ?", key);
    if (!entry) return Fail(entry.error());
    Expected<bool> row = entry->Step();
    if (!row) return Fail(row.error());
    if (!*row) return std::optional<std::string>();
    packed = entry->Bytes(0);
    raw_size = entry->Int(1);
    last_used = entry->Int(2);
  }
  // The format's own checksum covers the bytes.
  Expected<std::string> bytes = GzipDecompress(packed, kMaxValueBytes);
  if (!bytes || static_cast<int64_t>(bytes->size()) != raw_size) {
    LogWarning("a damaged cache entry was removed: {}", key);
    if (Status status = database_.Run("DELETE FROM cache WHERE key = ?", key); !status) return Fail(std::move(status));
    return std::optional<std::string>();
  }
  const int64_t now = clock_.NowMs();
  if (now - last_used >= kUseGranularityMs || now < last_used) {
    // Failing to note a use costs nothing but order of removal.
    static_cast<void>(database_.Run("UPDATE cache SET last_used = ? WHERE key = ?", now, key));
  }
  return std::optional<std::string>(*std::move(bytes));
}

std::optional<std::string> ContentCache::Get(const std::string& key) {
  std::lock_guard lock(mutex_);
  Expected<std::optional<std::string>> value = GetLocked(key);
  if (value) return *std::move(value);
  LogWarning("the cache cannot be read: {}", value.error().ToString());
  return std::nullopt;
}

Status ContentCache::Put(const std::string& key, std::string_view kind, std::string_view bytes) {
  if (bytes.size() > kMaxValueBytes) return {};
  Expected<std::string> packed = GzipCompress(bytes, 1);
  if (!packed) return packed.error();
  std::lock_guard lock(mutex_);
  const auto size = static_cast<int64_t>(packed->size());
  if (size > limit_) return {};
  Expected<Transaction> transaction = Transaction::Begin(database_);
  if (!transaction) return transaction.error();
  const int64_t now = clock_.NowMs();
  Status status = database_.Run(
      "INSERT OR REPLACE INTO cache (key, kind, bytes, raw_size, size, created, last_used) VALUES (?, ?, ?, ?, ?, ?, "
      "?)",
      key, kind, Blob{*packed}, bytes.size(), size, now, now);
  if (status) status = EvictLocked();
  if (status) status = transaction->Commit();
  return status;
}

Status ContentCache::EvictLocked() {
  Expected<int64_t> total = database_.Scalar("SELECT coalesce(sum(size), 0) FROM cache");
  if (!total) return total.error();
  if (*total <= limit_) return {};
  // Down to nine tenths, so that not every Put has to remove something.
  const int64_t target = limit_ - limit_ / 10;
  Status status = database_.Run(
      "DELETE FROM cache WHERE rowid IN (SELECT id FROM (SELECT rowid AS id,"
      " sum(size) OVER (ORDER BY last_used DESC, rowid DESC ROWS UNBOUNDED PRECEDING) AS kept FROM cache)"
      " WHERE kept > ?)",
      target);
  if (status) status = database_.Execute("PRAGMA incremental_vacuum");
  return status;
}

Status ContentCache::Remove(const std::string& key) {
  std::lock_guard lock(mutex_);
  return database_.Run("DELETE FROM cache WHERE key = ?", key);
}

Status ContentCache::Clear() {
  std::lock_guard lock(mutex_);
  Status status = database_.Run("DELETE FROM cache");
  if (status) status = database_.Execute("PRAGMA incremental_vacuum");
  return status;
}

Status ContentCache::SetLimit(uint64_t limit_bytes) {
  std::lock_guard lock(mutex_);
  limit_ = static_cast<int64_t>(limit_bytes);
  Expected<Transaction> transaction = Transaction::Begin(database_);
  if (!transaction) return transaction.error();
  Status status = EvictLocked();
  return status ? transaction->Commit() : status;
}

Expected<CacheStats> ContentCache::Stats() {
  std::lock_guard lock(mutex_);
  Expected<Statement> statement = database_.Query("SELECT count(*), coalesce(sum(size), 0) FROM cache");
  if (!statement) return Fail(statement.error());
  if (Expected<bool> row = statement->Step(); !row) return Fail(row.error());
  return CacheStats{statement->Int(0), statement->Int(1), limit_};
}

}  // namespace kernelwright::store
