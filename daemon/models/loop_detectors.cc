// See loop_detectors.h.
#include "daemon/models/loop_detectors.h"

#include <algorithm>

namespace kernelwright::models {
namespace {

bool Same(const LoopStep& a, const LoopStep& b) {
  return a.action == b.action && a.result == b.result && a.failed == b.failed;
}

// Equal steps at the end of the list. Other steps between them count too when the step failed: trying the same thing
// again later, with nothing better in between, is the same mistake.
size_t EqualFailures(std::span<const LoopStep> steps) {
  const LoopStep& last = steps.back();
  size_t count = 0;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (step->progress) break;
    if (Same(*step, last)) ++count;
  }
  return count;
}

size_t EqualInARow(std::span<const LoopStep> steps) {
  size_t count = 0;
  for (auto step = steps.rbegin(); step != steps.rend() && Same(*step, steps.back()) && !step->progress; ++step) {
    ++count;
  }
  return count;
}

// How often the last `length` steps were seen one after the other at the end.
size_t Rounds(std::span<const LoopStep> steps, size_t length) {
  size_t rounds = 1;
  while ((rounds + 1) * length <= steps.size()) {
    const std::span<const LoopStep> last = steps.subspan(steps.size() - length);
    const std::span<const LoopStep> before = steps.subspan(steps.size() - (rounds + 1) * length, length);
    if (!std::equal(last.begin(), last.end(), before.begin(), Same)) break;
    ++rounds;
  }
  return rounds;
}

bool AnyProgress(std::span<const LoopStep> steps) {
  return std::any_of(steps.begin(), steps.end(), [](const LoopStep& step) { return step.progress; });
}

}  // namespace

std::string_view LoopKindName(LoopKind kind) {
  switch (kind) {
    case LoopKind::kRepeat:
      return "repeat";
    case LoopKind::kPingPong:
      return "ping_pong";
    case LoopKind::kNoProgress:
      return "no_progress";
  }
  return "repeat";
}

std::optional<LoopFinding> FindLoop(std::span<const LoopStep> steps, const LoopLimits& limits) {
  if (steps.empty()) return std::nullopt;
  if (steps.back().failed) {
    if (const size_t count = EqualFailures(steps); count >= limits.equal_failures) {
      return LoopFinding{LoopKind::kRepeat, 1, count,
                         "the same action failed the same way " + std::to_string(count) + " times"};
    }
  } else if (const size_t count = EqualInARow(steps); count >= limits.equal_actions) {
    return LoopFinding{LoopKind::kRepeat, 1, count,
                       "the same action gave the same result " + std::to_string(count) + " times"};
  }
  for (size_t length = 2; length <= limits.longest_round; ++length) {
    const size_t rounds = Rounds(steps, length);
    if (rounds >= limits.ping_pong_rounds && !AnyProgress(steps.subspan(steps.size() - rounds * length))) {
      return LoopFinding{LoopKind::kPingPong, length, rounds,
                         "the same " + std::to_string(length) + " steps were done " + std::to_string(rounds) +
                             " times one after the other"};
    }
  }
  size_t idle = 0;
  for (auto step = steps.rbegin(); step != steps.rend() && !step->progress; ++step) ++idle;
  if (idle >= limits.without_progress) {
    return LoopFinding{LoopKind::kNoProgress, idle, 1, "nothing got better in " + std::to_string(idle) + " steps"};
  }
  return std::nullopt;
}

}  // namespace kernelwright::models
