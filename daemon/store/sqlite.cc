// See sqlite.h.
#include "daemon/store/sqlite.h"

#include <fcntl.h>

#include <cerrno>

#include "daemon/base/errno_status.h"
#include "daemon/base/unique_fd.h"

namespace kernelwright::store {
namespace {

constexpr int kBusyTimeoutMs = 10'000;

}  // namespace

Status SqliteStatus(int code, const std::string& detail, const std::string& path) {
  switch (code & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
      return {};
    case SQLITE_FULL:
      return Status(ErrorKind::kEnvironment, "the disk is full: " + detail, path,
                    "Free some disk space, or remove old runs (kernelwright runs prune); nothing stored was lost.");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Status(
          ErrorKind::kEnvironment, "the database is damaged: " + detail, path,
          "Nothing was changed. Restore the file from a backup or rescue it with `sqlite3 FILE .recover`; move "
          "it away to start with an empty one.");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
    case SQLITE_AUTH:
      return Status(ErrorKind::kEnvironment, "cannot open or write the database: " + detail, path,
                    "Check the owner and permissions of the file and its folder.");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Status(ErrorKind::kConflict, "another process keeps the database locked: " + detail, path,
                    "Wait for it to end and try again.");
    case SQLITE_CONSTRAINT:
      if (code == SQLITE_CONSTRAINT_FOREIGNKEY) {
        return Status(ErrorKind::kNotFound, "the record belongs to a run or candidate that does not exist", path);
      }
      return Status(ErrorKind::kConflict, "the record contradicts what is stored: " + detail, path);
    case SQLITE_NOMEM:
      return Status(ErrorKind::kEnvironment, "out of memory", path, "End other work and try again.");
    case SQLITE_IOERR:
      return Status(ErrorKind::kEnvironment, "the disk reported an error: " + detail, path,
                    "Check the disk and the free space on it.");
    default:
      return Status(ErrorKind::kInternal, "database error " + std::to_string(code) + ": " + detail, path);
  }
}

Status Statement::Error(int code) const { return SqliteStatus(code, sqlite3_errmsg(connection_), *path_); }

Expected<bool> Statement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return Fail(Error(code));
}

Status Statement::Finish() {
  while (true) {
    Expected<bool> row = Step();
    if (!row) return row.error();
    if (!*row) return {};
  }
}

std::string Statement::Text(int column) const {
  // The blob form gives the bytes as they are; asking for its size comes after, as SQLite requires.
  const void* data = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }
double Statement::Double(int column) const { return sqlite3_column_double(statement_.get(), column); }

Status Statement::Bind(int index, std::string_view text) {
  // A null pointer would bind NULL instead of the empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  const int code = sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return code == SQLITE_OK ? Status() : Error(code);
}

Status Statement::Bind(int index, Blob blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  const int code = sqlite3_bind_blob64(statement_.get(), index, data, blob.bytes.size(), SQLITE_STATIC);
  return code == SQLITE_OK ? Status() : Error(code);
}

Status Statement::Bind(int index, double value) {
  const int code = sqlite3_bind_double(statement_.get(), index, value);
  return code == SQLITE_OK ? Status() : Error(code);
}

Status Statement::BindInt(int index, int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), index, value);
  return code == SQLITE_OK ? Status() : Error(code);
}

Expected<Database> Database::Open(const std::filesystem::path& path, Mode mode) {
  if (mode == Mode::kReadWriteCreate) {
    // Made here so that it is private whatever the umask; SQLite gives its side files the same mode.
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!fd.valid()) return Fail(StatusFromErrno(errno, "cannot open the database", path.string()));
  }
  const int flags = (mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX;
  return Connect(path.string(), flags);
}

Expected<Database> Database::OpenInMemory() { return Connect(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX); }

Expected<Database> Database::Connect(const std::string& name, int flags) {
  Database database;
  database.path_ = std::make_unique<std::string>(name);
  sqlite3* connection = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &connection, flags, nullptr);
  database.connection_.reset(connection);
  if (code != SQLITE_OK) {
    return Fail(SqliteStatus(code, connection != nullptr ? sqlite3_errmsg(connection) : "out of memory", name));
  }
  sqlite3_extended_result_codes(connection, 1);
  sqlite3_busy_timeout(connection, kBusyTimeoutMs);
  if (Status status = database.Execute("PRAGMA foreign_keys = ON"); !status) return Fail(std::move(status));
  return database;
}

Status Database::Execute(const std::string& sql) {
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? Status() : SqliteStatus(code, sqlite3_errmsg(connection_.get()), *path_);
}

Expected<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return Fail(SqliteStatus(code, sqlite3_errmsg(connection_.get()), *path_));
  return Statement(connection_.get(), statement, path_.get());
}

Expected<int64_t> Database::Scalar(std::string_view sql, int64_t fallback) {
  Expected<Statement> statement = Prepare(sql);
  if (!statement) return Fail(statement.error());
  Expected<bool> row = statement->Step();
  if (!row) return Fail(row.error());
  return *row ? statement->Int(0) : fallback;
}

Expected<Transaction> Transaction::Begin(Database& database) {
  // IMMEDIATE takes the write lock now: a transaction that began as a reader could fail half-way instead of waiting.
  if (Status status = database.Execute("BEGIN IMMEDIATE"); !status) return Fail(std::move(status));
  return Transaction(&database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) static_cast<void>(database_->Execute("ROLLBACK"));
}

Status Transaction::Commit() {
  Status status = database_->Execute("COMMIT");
  if (status) database_ = nullptr;
  return status;
}

}  // namespace kernelwright::store
