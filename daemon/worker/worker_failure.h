// Puts a worker's end into words: what it lacked, when it said so, or how it died and what it last wrote. A pure
// function of the exit status and the last lines of standard error.
#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "daemon/base/status.h"
#include "daemon/base/subprocess.h"

namespace kernelwright::worker {

// Exit status of a worker that could not start because something is missing; its last line says what.
inline constexpr int kWorkerMissing = 3;

// The last lines that a worker wrote to standard error, made fit for a log: secrets taken out, control characters
// replaced, lengths and number bounded.
class ErrorTail {
 public:
  // Adds bytes as they came; returns the lines that are now complete.
  std::deque<std::string> Add(std::string_view bytes);
  // Ends a line without a line break.
  void Finish();
  const std::deque<std::string>& lines() const { return lines_; }
  std::string Text() const;  // the lines, joined by line breaks

 private:
  std::string Keep(std::string line);

  std::deque<std::string> lines_;
  std::string rest_;
};

// One printable line: escapes what a terminal would interpret, and cuts at 4 KiB.
std::string PrintableLine(std::string_view line);

// What to do about an interpreter that lacks something: which one it is, why it was taken, how to take another.
std::string InterpreterRemedy(const std::string& python, const std::string& reason);

struct WorkerEnd {
  ExitStatus exit;
  std::string python;                   // as it was started
  std::string interpreter_reason;       // why that one; may be empty
  std::deque<std::string> error_lines;  // of ErrorTail
  bool had_started = false;             // it had answered Hello
};

// kEnvironment for what the user can mend (missing or old packages, an interpreter that is too old, no sandbox), else
// kInternal.
Status DescribeWorkerEnd(const WorkerEnd& end);

}  // namespace kernelwright::worker
