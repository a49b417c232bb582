// Streams, colours and widths; see output.h.
#include "daemon/cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "daemon/cli/context.h"

namespace kernelwright::cli {
namespace {

bool Set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0;
}

bool Write(std::FILE* file, std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

Style DetectStyle(int fd, bool plain) {
  Style style;
  if (::isatty(fd) == 0) return style;
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) style.columns = size.ws_col;
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  if (plain || dumb || Set("NO_COLOR")) return style;
  style.color = true;
  style.live = true;
  return style;
}

void Output::Configure(bool json, bool plain) {
  json_ = json;
  out_style_ = DetectStyle(STDOUT_FILENO, plain);
  error_style_ = DetectStyle(STDERR_FILENO, plain);
}

bool Output::Out(std::string_view text) { return Write(stdout, text); }

bool Output::OutJson(const nlohmann::json& object) {
  return Out(object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void Output::Note(std::string_view line) { Write(stderr, std::string(line) + "\n"); }

void Output::Error(const Status& status) {
  std::string line = status.ToString();
  for (char& c : line) {
    if (c == '\n') c = ' ';
  }
  Note("kernelwright: " + Paint(error_style_, "31;1", "error:") + " " + line);
  if (json_) OutJson(ErrorObject(status));
}

nlohmann::json ErrorObject(const Status& status) {
  return {{"schema_version", kSchemaVersion},
          {"error",
           {{"kind", ErrorKindName(status.kind())},
            {"message", status.message()},
            {"where", status.where()},
            {"remedy", status.remedy()}}},
          {"exit_code", ExitCode(status.kind())}};
}

std::string Paint(const Style& style, std::string_view sgr, std::string_view text) {
  if (!style.color || text.empty()) return std::string(text);
  return "\x1b[" + std::string(sgr) + "m" + std::string(text) + "\x1b[0m";
}

size_t DisplayWidth(std::string_view text) {
  size_t width = 0;
  for (const char c : text) width += IsContinuation(c) ? 0 : 1;
  return width;
}

std::string FitWidth(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  std::string result;
  size_t taken = 0;
  for (const char c : text) {
    if (!IsContinuation(c) && ++taken == width) break;
    result += c;
  }
  return result + "…";
}

std::string PadWidth(std::string text, size_t width) {
  const size_t has = DisplayWidth(text);
  if (has < width) text.append(width - has, ' ');
  return text;
}

}  // namespace kernelwright::cli
