// The tables and how a database of an older build becomes one of this build. The number of the last migration is kept
// in the file (user_version); a migration that was released is never edited, a change is a new one at the end.
#pragma once

#include <span>
#include <string>

#include "daemon/base/status.h"
#include "daemon/store/sqlite.h"

namespace kernelwright::store {

// Migration i turns schema version i into i + 1; version 0 is an empty file.
std::span<const char* const> StoreMigrations();
std::span<const char* const> CacheMigrations();

// Marks a file as ours (SQLite's application_id).
inline constexpr int64_t kStoreApplicationId = 0x4B575354;  // "KWST"
inline constexpr int64_t kCacheApplicationId = 0x4B574348;  // "KWCH"

// Brings the file to the last version, each step in a transaction of its own: a step that fails leaves the version
// before it. kEnvironment for a file that is damaged, belongs to another program, or was written by a newer build; in
// these cases nothing has been changed. Afterwards the file is in write-ahead mode.
Status Migrate(Database& database, std::span<const char* const> migrations, int64_t application_id);

}  // namespace kernelwright::store
