// See schema.h.
#include "daemon/store/schema.h"

#include <array>

namespace kernelwright::store {
namespace {

// Times are milliseconds since 1970 UTC. JSON columns hold one JSON value as text.
constexpr const char* kStoreV1 = R"sql(
CREATE TABLE runs (
  id             TEXT NOT NULL PRIMARY KEY,     -- sorts by time of creation
  kind           TEXT NOT NULL,                 -- optimize, tune, auto, search, session, …
  status         TEXT NOT NULL,                 -- queued, running, paused, finished, failed, cancelled
  created        INTEGER NOT NULL,
  updated        INTEGER NOT NULL,
  request        TEXT NOT NULL,                 -- JSON: what was asked for
  reference      TEXT NOT NULL,                 -- JSON: reference, inputs, seeds, tolerances; fixed once set
  reference_hash TEXT NOT NULL,                 -- SHA-256 of it; '' until it is set
  chips          TEXT NOT NULL,                 -- JSON array of names
  result         TEXT NOT NULL,                 -- JSON; null until the end
  client         TEXT NOT NULL,                 -- who asked: cli, vscode, mcp, …
  owner          TEXT NOT NULL                  -- process that drives it: boot:pid:start
) STRICT;
CREATE INDEX runs_by_status ON runs (status);

CREATE TRIGGER runs_reference_is_frozen
BEFORE UPDATE OF reference, reference_hash ON runs
WHEN OLD.reference_hash <> '' AND (NEW.reference_hash <> OLD.reference_hash OR NEW.reference <> OLD.reference)
BEGIN
  SELECT RAISE(ABORT, 'the reference of a run is frozen');
END;

CREATE TABLE candidates (
  run          TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number       INTEGER NOT NULL,                -- 3 for "c3"
  parents      TEXT NOT NULL,                   -- JSON array of ids
  status       TEXT NOT NULL,
  what         TEXT NOT NULL,                   -- one line for people
  edits        TEXT NOT NULL,                   -- JSON
  content_hash TEXT NOT NULL,                   -- SHA-256 of the candidate's source
  result       TEXT NOT NULL,                   -- JSON: gate, estimate_ms, why, …
  created      INTEGER NOT NULL,
  updated      INTEGER NOT NULL,
  PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX candidates_by_content ON candidates (run, content_hash);

CREATE TABLE evaluations (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  run         TEXT NOT NULL,
  candidate   INTEGER NOT NULL,
  chip        TEXT NOT NULL,                    -- '' when the stage has no chip
  stage       TEXT NOT NULL,                    -- compile, check, estimate, …
  attempt     INTEGER NOT NULL,
  status      TEXT NOT NULL,                    -- pass, fail, not_run
  gate        TEXT NOT NULL,                    -- the gate that decided, '' if none
  reason      TEXT NOT NULL,
  result      TEXT NOT NULL,                    -- JSON
  evidence    TEXT NOT NULL,                    -- JSON: class, chip, versions
  duration_ms INTEGER NOT NULL,
  reported    INTEGER NOT NULL,                 -- 1: a client may have seen it, so it never changes
  created     INTEGER NOT NULL,
  UNIQUE (run, candidate, chip, stage, attempt),
  FOREIGN KEY (run, candidate) REFERENCES candidates (run, number) ON DELETE CASCADE
) STRICT;

CREATE TABLE approvals (
  id        INTEGER PRIMARY KEY AUTOINCREMENT,
  run       TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step      TEXT NOT NULL,
  step_hash TEXT NOT NULL,                      -- SHA-256 of the step's content: an approval holds for nothing else
  decision  TEXT NOT NULL,                      -- approved, rejected
  scope     TEXT NOT NULL,                      -- once, plan, session, always
  who       TEXT NOT NULL,                      -- a person, or a rule by name
  time      INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_by_step ON approvals (run, step_hash);

CREATE TABLE events (
  seq     INTEGER PRIMARY KEY AUTOINCREMENT,    -- global, never given twice
  run     TEXT NOT NULL,                        -- '' for what concerns the daemon as a whole
  time    INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  payload TEXT NOT NULL                         -- JSON
) STRICT;
CREATE INDEX events_by_run ON events (run, seq);

CREATE TABLE meta (
  key   TEXT NOT NULL PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
)sql";

constexpr const char* kCacheV1 = R"sql(
CREATE TABLE cache (
  key       TEXT NOT NULL PRIMARY KEY,          -- SHA-256 over everything that the value depends on
  kind      TEXT NOT NULL,
  bytes     BLOB NOT NULL,                      -- gzip
  raw_size  INTEGER NOT NULL,
  size      INTEGER NOT NULL,                   -- of `bytes`
  created   INTEGER NOT NULL,
  last_used INTEGER NOT NULL
) STRICT;
CREATE INDEX cache_by_use ON cache (last_used, size);
)sql";

constexpr std::array<const char*, 1> kStoreMigrations = {kStoreV1};
constexpr std::array<const char*, 1> kCacheMigrations = {kCacheV1};

// Whether the file is empty, ours and not newer than this build. Reads only.
Expected<int64_t> CheckVersion(Database& database, int64_t last, int64_t application_id) {
  Expected<int64_t> version = database.Scalar("PRAGMA user_version");
  if (!version) return version;
  Expected<int64_t> owner = database.Scalar("PRAGMA application_id");
  if (!owner) return owner;
  Expected<int64_t> tables = database.Scalar("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables;
  if (*tables != 0 && *owner != application_id) {
    return Fail(ErrorKind::kEnvironment, "this is a database of another program; nothing was changed", database.path(),
                "Move the file away.");
  }
  if (*version > last) {
    return Fail(ErrorKind::kEnvironment,
                "the database was written by a newer kernelwright (schema " + std::to_string(*version) +
                    ", this build knows " + std::to_string(last) + "); nothing was changed",
                database.path(), "Update kernelwright to the version that wrote it.");
  }
  return version;
}

}  // namespace

std::span<const char* const> StoreMigrations() { return kStoreMigrations; }
std::span<const char* const> CacheMigrations() { return kCacheMigrations; }

Status Migrate(Database& database, std::span<const char* const> migrations, int64_t application_id) {
  const auto last = static_cast<int64_t>(migrations.size());
  Expected<int64_t> version = CheckVersion(database, last, application_id);
  if (!version) return version.error();
  // Space that a prune frees can be given back only if this is set before the first table.
  if (*version == 0) {
    if (Status status = database.Execute("PRAGMA auto_vacuum = INCREMENTAL"); !status) return status;
  }
  if (Status status = database.Execute("PRAGMA journal_mode = WAL; PRAGMA journal_size_limit = 16777216"); !status) {
    return status;
  }
  while (*version < last) {
    Expected<Transaction> transaction = Transaction::Begin(database);
    if (!transaction) return transaction.error();
    // Another process may have migrated while this one waited for the lock.
    version = CheckVersion(database, last, application_id);
    if (!version) return version.error();
    if (*version >= last) break;
    Status status = database.Execute(migrations[static_cast<size_t>(*version)]);
    if (status) {
      status = database.Execute("PRAGMA user_version = " + std::to_string(*version + 1) +
                                "; PRAGMA application_id = " + std::to_string(application_id));
    }
    if (status) status = transaction->Commit();
    if (!status) return status;
    ++*version;
  }
  return {};
}

}  // namespace kernelwright::store
