// What a run's events look like while it goes on. On a terminal each candidate has a line that changes in place and
// becomes fixed when the candidate is done, with a line of counts and time left below; elsewhere each change that
// matters is a plain line. Takes events, gives text: no clock and no terminal inside.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "daemon/agents/engine.h"
#include "daemon/cli/output.h"

namespace kernelwright::cli {

class Progress {
 public:
  explicit Progress(Style style) : style_(style) {}

  // Text to write for the event; may be empty.
  std::string Apply(const agents::RunEvent& event);
  // A line that is not an event ("cancelling…"), kept clear of the lines that change.
  std::string Say(const std::string& line);
  // Takes the changing lines away; after it the terminal belongs to others.
  std::string Close();

  bool finished() const { return finished_; }
  uint64_t last_sequence() const { return last_sequence_; }

 private:
  struct Row {
    std::string chip;
    std::string id;
    std::string status;
    std::string what;
  };

  void Candidate(const nlohmann::json& payload, std::string* fixed);
  std::string ActiveLine(const Row& row) const;
  std::string StatusLine() const;
  // Clears the changing lines, writes `fixed`, draws the changing lines again.
  std::string Redraw(const std::string& fixed);

  const Style style_;
  std::vector<Row> active_;
  std::map<std::string, std::string> said_;  // chip and candidate -> what its last line said
  std::string stage_;
  std::string chip_;
  bool several_chips_ = false;
  double done_ = 0;
  double total_ = 0;
  double compiles_ = 0;
  double eta_ms_ = -1;
  std::string best_;
  size_t drawn_ = 0;
  bool finished_ = false;
  uint64_t last_sequence_ = 0;
};

}  // namespace kernelwright::cli
