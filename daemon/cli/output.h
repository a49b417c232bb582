// Where a command writes. Standard output has results only; progress, notes and errors go to standard error. Colours
// and cursor movement are used on a terminal alone, and not with NO_COLOR, TERM=dumb or --plain.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "daemon/base/status.h"

namespace kernelwright::cli {

struct Style {
  bool color = false;
  bool live = false;  // lines may be rewritten in place
  int columns = 100;  // width to fit lines into
};

// What the descriptor can show, given the environment.
Style DetectStyle(int fd, bool plain);

class Output {
 public:
  Output() = default;
  // Decides on colours; called once the flags are known.
  void Configure(bool json, bool plain);

  const Style& out_style() const { return out_style_; }
  const Style& error_style() const { return error_style_; }
  bool json() const { return json_; }

  // To standard output, as it is. False when it cannot be written (closed pipe, full disk).
  bool Out(std::string_view text);
  // One JSON object and a line end, to standard output.
  bool OutJson(const nlohmann::json& object);
  // A line to standard error.
  void Note(std::string_view line);
  // The error as one line on standard error and, with --json, as an object on standard output.
  void Error(const Status& status);

 private:
  bool json_ = false;
  Style out_style_;
  Style error_style_;
};

// {"schema_version": 1, "error": {…}, "exit_code": n}
nlohmann::json ErrorObject(const Status& status);

// The text in a colour (an SGR code such as "32") when the style has colours.
std::string Paint(const Style& style, std::string_view sgr, std::string_view text);

// Number of columns that UTF-8 text takes, one for each code point.
size_t DisplayWidth(std::string_view text);
// At most `width` columns, the last one "…" when something is cut.
std::string FitWidth(std::string_view text, size_t width);
// Padded with blanks on the right.
std::string PadWidth(std::string text, size_t width);

}  // namespace kernelwright::cli
