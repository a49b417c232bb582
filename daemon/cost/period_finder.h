// Finds the period with which the iterations of a loop repeat, from one signature per iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kernelwright::cost {

class PeriodFinder {
 public:
  // Adds the signature of an iteration. Looks at the history when its length has doubled (from 64 on, amortised
  // constant time) and returns the smallest period of at least `least` whose repetition covers most of what was looked
  // at.
  std::optional<size_t> Add(uint64_t signature, size_t least);
  // Forgets the history; the next look comes after `first_look` iterations at least.
  void Restart(size_t first_look);

 private:
  std::vector<uint64_t> history_;
  size_t next_look_ = kFirstLook;
  static constexpr size_t kFirstLook = 64;
  static constexpr size_t kLongest = size_t{1} << 17;
};

}  // namespace kernelwright::cost
