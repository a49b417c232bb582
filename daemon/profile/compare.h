// Two profiles side by side: of two versions of a kernel, or of one on two chips.
#pragma once

#include <string>
#include <vector>

#include "daemon/profile/report.h"

namespace kernelwright::profile {

// A line of either. Lines of two versions are matched by their text in order; 0: there is none on that side.
struct LineDifference {
  std::string file;
  int line = 0;
  std::string other_file;
  int other_line = 0;
  std::string text;  // of the line, or of the other's when there is none
  double cycles = 0;
  double other_cycles = 0;
  double milliseconds = 0;  // cycles of two chips cannot be compared, times can
  double other_milliseconds = 0;
};

struct KernelDifference {
  std::string name;        // empty: only the other has it
  std::string other_name;  // empty: only this one has it
  double cycles = 0;
  double other_cycles = 0;
  double milliseconds = 0;
  double other_milliseconds = 0;
  double dma_bytes = 0;
  double other_dma_bytes = 0;
  double spills = 0;
  double other_spills = 0;
  double dma_wait_cycles = 0;
  double other_dma_wait_cycles = 0;
};

struct Comparison {
  std::string file;  // of the other
  std::string function;
  std::string chip;
  bool same_chip = true;
  double milliseconds = 0;  // 0: no time
  double other_milliseconds = 0;
  double ratio = 0;                   // other / this: above 1 this one takes less time; 0 without two times
  std::string verdict;                // "faster", "probably faster", "tie", "probably slower", "slower"; empty
  std::vector<LineDifference> lines;  // largest difference first
  std::vector<KernelDifference> kernels;
};

Comparison Compare(const ProfileReport& report, const ProfileReport& other);

}  // namespace kernelwright::profile
