// Reads the end of a worker's standard error. The worker itself says what it lacks and exits with status 3; what
// happens before its own code can speak (a missing package of ours, a syntax that the interpreter does not know) is
// recognised by Python's own last line.
#include "daemon/worker/worker_failure.h"

#include <array>
#include <utility>

#include "daemon/base/redact.h"

namespace kernelwright::worker {
namespace {

constexpr size_t kMaxLines = 40;
constexpr size_t kMaxLineBytes = 4096;

Status Missing(const WorkerEnd& end, std::string message) {
  return {ErrorKind::kEnvironment, std::move(message), end.python,
          InterpreterRemedy(end.python, end.interpreter_reason)};
}

std::string LastLine(const std::deque<std::string>& lines) {
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->find_first_not_of(" \t") != std::string::npos) return *line;
  }
  return {};
}

std::string WithoutPrefix(std::string line) {
  for (const std::string_view prefix : {"kernelwright-worker: error: ", "kernelwright worker: "}) {
    if (line.starts_with(prefix)) return line.substr(prefix.size());
  }
  return line;
}

// The name between the quotes of "ModuleNotFoundError: No module named 'google.protobuf'", or after it when unquoted.
std::string MissingModule(const std::string& line) {
  constexpr std::string_view kText = "No module named ";
  const size_t at = line.find(kText);
  if (at == std::string::npos) return {};
  std::string name = line.substr(at + kText.size());
  if (name.starts_with('\'')) name = name.substr(1, name.find('\'', 1) - 1);
  return name.substr(0, name.find_first_of(" ;:"));
}

}  // namespace

std::string InterpreterRemedy(const std::string& python, const std::string& reason) {
  std::string remedy = "The interpreter is " + python;
  if (!reason.empty()) remedy += " (" + reason + ")";
  return remedy + ". Name another one with --python, or run scripts/setup to make an environment that has everything.";
}

std::string PrintableLine(std::string_view line) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text;
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (text.size() >= kMaxLineBytes) {
      text += "…";
      break;
    }
    if (byte == '\t') {
      text += ' ';
    } else if (byte < 0x20 || byte == 0x7f) {
      text += "\\x";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text += c;
    }
  }
  return text;
}

std::string ErrorTail::Keep(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  line = ProcessRedactor().Redact(PrintableLine(line));
  lines_.push_back(line);
  if (lines_.size() > kMaxLines) lines_.pop_front();
  return line;
}

std::deque<std::string> ErrorTail::Add(std::string_view bytes) {
  std::deque<std::string> complete;
  while (true) {
    const size_t end = bytes.find('\n');
    // A line that never ends must not fill the memory.
    if (rest_.size() < 2 * kMaxLineBytes) rest_ += bytes.substr(0, end).substr(0, 2 * kMaxLineBytes);
    if (end == std::string_view::npos) return complete;
    complete.push_back(Keep(std::exchange(rest_, {})));
    bytes.remove_prefix(end + 1);
  }
}

void ErrorTail::Finish() {
  if (!rest_.empty()) Keep(std::exchange(rest_, {}));
}

std::string ErrorTail::Text() const {
  std::string text;
  for (const std::string& line : lines_) text += (text.empty() ? "" : "\n") + line;
  return text;
}

Status DescribeWorkerEnd(const WorkerEnd& end) {
  const std::string last = LastLine(end.error_lines);
  if (end.exit.signal == 0 && end.exit.code == kWorkerMissing && !last.empty()) {
    return Missing(end, WithoutPrefix(last));
  }
  if (!end.had_started) {
    const std::string module = MissingModule(last);
    if (module == "kernelwright_worker" || module.starts_with("kernelwright")) {
      return {ErrorKind::kEnvironment,
              "the worker's Python package is missing or incomplete (no module " + module + ")", end.python,
              "Install Kernelwright again, or build it with scripts/build."};
    }
    if (!module.empty()) {
      const std::string package = module.starts_with("google") ? "protobuf" : module.substr(0, module.find('.'));
      return {ErrorKind::kEnvironment, "the interpreter has no package " + package, end.python,
              "Run `" + end.python + " -m pip install 'jax[tpu]' protobuf flatbuffers`. " +
                  InterpreterRemedy(end.python, end.interpreter_reason)};
    }
    if (last.starts_with("SyntaxError")) {
      return Missing(end, "the interpreter is too old for the worker, which needs Python 3.10 or newer");
    }
    // A Python that starts has something to say about its end; what is silent is another program.
    if (end.exit.signal == 0 && last.empty()) {
      return Missing(end,
                     "it ended before it said anything (" + end.exit.ToString() + "): is it a Python interpreter?");
    }
  }
  std::string message = "the worker ended unexpectedly (" + end.exit.ToString() + ")";
  if (!last.empty()) {
    message += "; its last lines were:";
    const size_t skip = end.error_lines.size() > 8 ? end.error_lines.size() - 8 : 0;
    for (size_t i = skip; i < end.error_lines.size(); ++i) message += "\n  " + end.error_lines[i];
  }
  const bool killed = end.exit.signal == 9;
  return {ErrorKind::kInternal, std::move(message), end.python,
          killed ? "The system may have ended it for lack of memory: run fewer jobs at once, or free memory."
                 : "Run `kernelwright doctor`."};
}

}  // namespace kernelwright::worker
