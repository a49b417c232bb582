// Errors as values. Every error says what happened, where, and what to do next; its kind decides the exit code.
// Functions that can fail return Status, or Expected<T> when they also have a result. Nothing here throws.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "tl/expected.hpp"

namespace kernelwright {

enum class ErrorKind {
  kOk = 0,
  kUserCode,     // the user's program has an error
  kUsage,        // wrong arguments or flags
  kEnvironment,  // something is missing on this machine
  kCancelled,    // the user, or a client that left, cancelled
  kLimit,        // a deadline, budget or resource limit was reached before any verdict
  kConflict,     // what was read has changed since: file, version, lock
  kNotFound,     // a named thing does not exist: run, function, file
  kInternal,     // our own fault
};

// Stable lower-case name, as used in JSON and in logs ("user_code", "usage", …).
std::string_view ErrorKindName(ErrorKind kind);

// Exit code of a command that ends with this kind (docs/json.md): 0 result, 1 user code, 2 usage, 3 environment,
// 4 cancelled or limit, 5 ours. kConflict and kNotFound are usage errors (2).
int ExitCode(ErrorKind kind);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(ErrorKind kind, std::string message, std::string where = {}, std::string remedy = {})
      : kind_(kind), message_(std::move(message)), where_(std::move(where)), remedy_(std::move(remedy)) {}

  bool ok() const { return kind_ == ErrorKind::kOk; }
  explicit operator bool() const { return ok(); }
  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }  // what happened
  const std::string& where() const { return where_; }      // file:line, command or component; may be empty
  const std::string& remedy() const { return remedy_; }    // what to do next; may be empty

  // "where: message. remedy" on one line, parts that are empty left out.
  std::string ToString() const;

 private:
  ErrorKind kind_ = ErrorKind::kOk;
  std::string message_;
  std::string where_;
  std::string remedy_;
};

template <typename T>
using Expected = tl::expected<T, Status>;

// Shorthand for returning an error from a function that returns Expected<T>.
inline tl::unexpected<Status> Fail(Status status) { return tl::unexpected<Status>(std::move(status)); }
inline tl::unexpected<Status> Fail(ErrorKind kind, std::string message, std::string where = {},
                                   std::string remedy = {}) {
  return tl::unexpected<Status>(Status(kind, std::move(message), std::move(where), std::move(remedy)));
}

}  // namespace kernelwright
