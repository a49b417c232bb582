// Copies in flight: one serial HBM queue, and for each flag the copies that will raise it. Times are integer ticks, so
// that equal states are exactly equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernelwright::cost {

// What of the copies in flight matters for what comes: how far ahead of now they land. Equal states behave equally.
struct CopyState {
  int64_t queue_ahead = 0;
  std::vector<std::pair<uint64_t, std::vector<std::pair<int64_t, uint64_t>>>> flags;
  std::vector<std::pair<uint64_t, int64_t>> semaphores;
  bool operator==(const CopyState&) const = default;
};

class CopyQueue {
 public:
  // Lets the HBM queue move something for `ticks`, not before `now`; returns when it is through.
  int64_t Transfer(int64_t now, int64_t ticks);
  // A copy of `granules` that lands at `done` and raises `flag`.
  void Start(uint64_t flag, int64_t done, uint64_t granules);
  // Waits on `flag` for `granules`, oldest copies first, parts of copies included. Returns when the last of them has
  // landed, at least `now`. `matched` is false when fewer were in flight.
  int64_t Wait(uint64_t flag, uint64_t granules, int64_t now, bool* matched);

  // The program itself adds to a flag. On one that copies raise, adding is like a copy that lands now, and taking away
  // is what follows each wait; others are semaphores and are counted.
  void Signal(uint64_t flag, int64_t amount, int64_t now);
  // A signal that is not understood: no semaphore is known any more.
  void ForgetSignals();
  // Whether the signals seen so far are enough for a wait until the semaphore is at least this.
  bool IsRaised(uint64_t flag, int64_t least) const;

  CopyState Capture(int64_t now) const;
  // Moves everything in flight into the future.
  void Shift(int64_t ticks);

 private:
  struct Copy {
    int64_t done = 0;       // tick at which it has landed
    uint64_t granules = 0;  // still to be waited for
  };
  struct Flag {
    std::vector<Copy> copies;  // oldest first
    size_t head = 0;
  };
  int64_t hbm_free_ = 0;
  std::unordered_map<uint64_t, Flag> flags_;
  std::unordered_map<uint64_t, int64_t> semaphores_;
  bool signals_known_ = true;
};

}  // namespace kernelwright::cost
