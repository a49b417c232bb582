// A thin owner of a SQLite connection: statements that clean up after themselves, and error codes as Status. Nothing
// here knows our tables. A connection belongs to one thread at a time; the classes above it hold the lock.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright::store {

// Bytes to bind as a BLOB; the view must live until the statement has run.
struct Blob {
  std::string_view bytes;
};

class Statement {
 public:
  // True when there is a row, false at the end.
  Expected<bool> Step();
  // Steps to the end and drops the rows.
  Status Finish();

  // Columns of the current row, from 0. NULL reads as "" or 0.
  std::string Text(int column) const;
  std::string Bytes(int column) const { return Text(column); }
  int64_t Int(int column) const;
  double Double(int column) const;

  Status Bind(int index, std::string_view text);
  Status Bind(int index, Blob blob);
  Status Bind(int index, double value);
  template <std::integral T>
  Status Bind(int index, T value) {
    return BindInt(index, static_cast<int64_t>(value));
  }

 private:
  friend class Database;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3* connection, sqlite3_stmt* statement, const std::string* path)
      : connection_(connection), statement_(statement), path_(path) {}
  Status BindInt(int index, int64_t value);
  Status Error(int code) const;

  sqlite3* connection_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  const std::string* path_;
};

class Database {
 public:
  enum class Mode { kReadWriteCreate, kReadOnly };

  // Opens the file, made with mode 0600 if need be, with foreign keys on and a busy timeout. Writes nothing yet.
  static Expected<Database> Open(const std::filesystem::path& path, Mode mode);
  // A database of this object's alone, gone with it; no file.
  static Expected<Database> OpenInMemory();

  // One or more statements without parameters or rows.
  Status Execute(const std::string& sql);

  // A statement with its parameters bound in order.
  template <typename... Args>
  Expected<Statement> Query(std::string_view sql, const Args&... args) {
    Expected<Statement> statement = Prepare(sql);
    if (!statement) return statement;
    Status status;
    int index = 0;
    ((status = status.ok() ? statement->Bind(++index, args) : status), ...);
    if (!status) return Fail(std::move(status));
    return statement;
  }
  // A statement without rows, run to its end.
  template <typename... Args>
  Status Run(std::string_view sql, const Args&... args) {
    Expected<Statement> statement = Query(sql, args...);
    return statement ? statement->Finish() : statement.error();
  }
  // The first column of the first row; `fallback` without a row.
  Expected<int64_t> Scalar(std::string_view sql, int64_t fallback = 0);

  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(connection_.get()); }
  int changes() const { return sqlite3_changes(connection_.get()); }
  const std::string& path() const { return *path_; }

 private:
  static Expected<Database> Connect(const std::string& name, int flags);

  struct Closer {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  Expected<Statement> Prepare(std::string_view sql);

  std::unique_ptr<std::string> path_;  // on the heap: statements point to it
  std::unique_ptr<sqlite3, Closer> connection_;
};

// BEGIN IMMEDIATE … COMMIT; rolls back when it is destroyed before Commit succeeded.
class Transaction {
 public:
  static Expected<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  // On return of ok the changes are on disk.
  Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

// The Status for a SQLite result code: disk full, damaged, read-only and locked files have their own remedies.
Status SqliteStatus(int code, const std::string& detail, const std::string& path);

}  // namespace kernelwright::store
