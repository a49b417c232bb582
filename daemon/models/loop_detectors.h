// Whether an agent goes round in circles: pure functions over what it did so far. The second equal failure stops, so
// that no budget burns on a step that cannot succeed.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kernelwright::models {

// One action of an agent and what came of it.
struct LoopStep {
  std::string action;  // hash or text of what was done: tool and arguments, or the candidate's content
  std::string result;  // hash or text of what came back; empty when it does not matter
  bool failed = false;
  bool progress = false;  // something was better than ever before: a new best, a new gate passed, a file first read
};

enum class LoopKind { kRepeat, kPingPong, kNoProgress };
std::string_view LoopKindName(LoopKind kind);  // "repeat", "ping_pong", "no_progress"

struct LoopFinding {
  LoopKind kind = LoopKind::kRepeat;
  size_t length = 0;    // steps of the loop's round; of kNoProgress, steps without progress
  size_t rounds = 0;    // how often it was seen
  std::string message;  // for the model and the person
};

struct LoopLimits {
  size_t equal_failures = 2;     // the same action with the same failure
  size_t equal_actions = 3;      // the same action and result without failure
  size_t ping_pong_rounds = 2;   // A B A B is two
  size_t longest_round = 4;      // steps of a round that are looked for
  size_t without_progress = 12;  // steps
};

// What is wrong at the end of these steps, if anything; the most specific finding.
std::optional<LoopFinding> FindLoop(std::span<const LoopStep> steps, const LoopLimits& limits = {});

}  // namespace kernelwright::models
