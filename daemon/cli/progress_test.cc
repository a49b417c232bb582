// Events to lines, plain and live.
#include "daemon/cli/progress.h"

#include "gtest/gtest.h"

namespace kernelwright::cli {
namespace {

agents::RunEvent Event(uint64_t sequence, const std::string& kind, const std::string& payload) {
  return {sequence, "r1", 0, kind, payload};
}

std::string Candidate(const std::string& id, const std::string& status, const std::string& more = "") {
  return R"({"chip":"v5e","candidate":{"id":")" + id + R"(","status":")" + status + R"(","what":"bm=512")" + more +
         "}}";
}

TEST(Progress, PlainLinesSayEachChangeOnce) {
  Progress progress{Style()};
  EXPECT_EQ(
      progress.Apply(Event(1, "run_started", R"({"kind":"optimize","file":"/k.py","function":"mm","chips":["v5e"]})")),
      "optimize mm in /k.py for v5e  (run r1)\n");
  EXPECT_EQ(progress.Apply(Event(2, "plan_made",
                                 R"({"chip":"v5e","steps":[{"id":"s1","title":"retune blocks","line":3,"end_line":5,
                                     "expected_gain":"up to 11x"}]})")),
            "plan s1: retune blocks (lines 3-5), expected up to 11x\n");
  EXPECT_EQ(progress.Apply(Event(3, "baseline_ready", R"({"cost":{"refusal":{"reason":"no dump"}},"note":"odd"})")),
            "original: no time: no dump\n  odd\n");
  EXPECT_EQ(progress.Apply(Event(4, "progress", R"({"stage":"compiling","total":4,"eta_milliseconds":"61000"})")),
            "compiling\n");
  EXPECT_EQ(progress.Apply(Event(5, "progress", R"({"stage":"compiling","finished":1,"total":4,
                                                  "eta_milliseconds":61000})")),
            "");
  EXPECT_EQ(progress.Apply(Event(6, "candidate_changed", Candidate("c1", "compiling"))), "");
  EXPECT_EQ(
      progress.Apply(Event(7, "candidate_changed", Candidate("c1", "failed", R"(,"gate":"G23","why":"too big")"))),
      "c1   failed   -          bm=512  G23: too big  [1/4, about 1 min 1 s left]\n");
  EXPECT_EQ(progress.Apply(Event(8, "best_changed", R"({"candidate":"c2","speedup":11.04})")),
            "best so far: c2, 11.04x (estimated)\n");
  EXPECT_EQ(progress.Apply(Event(9, "log_line", R"({"level":"warning","text":"slow"})")), "warning: slow\n");
  EXPECT_FALSE(progress.finished());
  EXPECT_EQ(progress.Apply(Event(10, "run_finished", "{}")), "");
  EXPECT_TRUE(progress.finished());
  EXPECT_EQ(progress.last_sequence(), 10U);
}

TEST(Progress, UnknownOrDamagedEventsAreNotShown) {
  Progress progress{Style()};
  EXPECT_EQ(progress.Apply(Event(1, "", "")), "");
  EXPECT_EQ(progress.Apply(Event(2, "from_the_future", "{}")), "");
  EXPECT_EQ(progress.Apply(Event(3, "progress", "[")), "");
  EXPECT_EQ(progress.last_sequence(), 3U);
}

// A terminal that does what the sequences say shows fixed lines above and the changing ones below.
class Screen {
 public:
  void Write(const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\x1b') {
        const size_t end = text.find_first_of("AJm", i);
        const int count = text[end] == 'A' ? std::stoi(text.substr(i + 2)) : 0;
        if (text[end] == 'A') row_ -= static_cast<size_t>(count);
        if (text[end] == 'J') lines_.resize(row_);
        i = end;
      } else if (text[i] == '\n') {
        ++row_;
      } else if (text[i] != '\r') {
        if (lines_.size() <= row_) lines_.resize(row_ + 1);
        lines_[row_] += text[i];
      }
    }
  }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  size_t row_ = 0;
};

TEST(Progress, LiveLinesChangeInPlace) {
  Style style;
  style.live = true;
  style.color = true;
  style.columns = 120;
  Progress progress(style);
  Screen screen;
  screen.Write(progress.Apply(Event(1, "run_started", R"({"kind":"tune","file":"/k.py","function":"mm"})")));
  screen.Write(progress.Apply(Event(2, "progress", R"({"stage":"compiling","finished":0,"total":2,"compiles":1})")));
  screen.Write(progress.Apply(Event(3, "candidate_changed", Candidate("c1", "compiling"))));
  screen.Write(progress.Apply(Event(4, "candidate_changed", Candidate("c2", "compiling"))));
  screen.Write(progress.Apply(Event(5, "candidate_changed", Candidate("c1", "checking"))));
  ASSERT_EQ(screen.lines().size(), 4U);
  EXPECT_EQ(screen.lines()[0], "tune mm in /k.py  (run r1)");
  EXPECT_EQ(screen.lines()[1], "c1   checking…           bm=512");
  EXPECT_EQ(screen.lines()[2], "c2   compiling…          bm=512");
  EXPECT_EQ(screen.lines()[3].find("compiling  0 of 2 candidates, 1 compiles"), 0U);
  screen.Write(progress.Say("cancelling"));
  screen.Write(progress.Apply(Event(6, "candidate_changed", Candidate("c2", "passed", R"(,"estimate_ms":0.89)"))));
  ASSERT_EQ(screen.lines().size(), 5U);
  EXPECT_EQ(screen.lines()[1], "cancelling");
  EXPECT_EQ(screen.lines()[2], "c2   passed   0.890 ms   bm=512");
  EXPECT_EQ(screen.lines()[3], "c1   checking…           bm=512");
  screen.Write(progress.Apply(Event(7, "run_finished", "{}")));
  EXPECT_EQ(screen.lines().size(), 3U);
}

TEST(Progress, LiveLinesFitTheTerminal) {
  Style style;
  style.live = true;
  style.columns = 30;
  Progress progress(style);
  const std::string text = progress.Apply(
      Event(1, "candidate_changed", Candidate("c1", "failed", R"(,"why":"a very long reason that does not fit")")));
  EXPECT_LE(DisplayWidth(text.substr(0, text.find('\n'))), 29U);
}

}  // namespace
}  // namespace kernelwright::cli
