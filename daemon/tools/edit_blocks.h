// Search/replace blocks, the form in which models edit best: each names the lines that it replaces. A block is applied
// only where it can mean one place: exact, then without regard to blanks at line ends, then with the whole block
// shifted by one indentation. It is never applied to something that merely looks alike; that is what the error shows.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::tools {

struct EditBlock {
  std::string search;   // whole lines; empty: only for a file that has no text yet
  std::string replace;  // whole lines; empty: the lines go
  int line = 0;         // from 1, where the searched lines start, when they are in the file more than once; 0: not said
};

struct BlockOutcome {
  bool applied = false;
  std::string why;     // not applied: what is wrong and what to do
  std::string how;     // applied: "exact", "blanks", "indentation"
  int first_line = 0;  // from 1, in the old text
  int last_line = 0;
};

struct EditOutcome {
  std::string text;                    // with the blocks that could be applied
  std::vector<BlockOutcome> outcomes;  // one for each block, in order
  bool all_applied() const;
};

// Blocks are matched against the old text, not against what other blocks made of it, and must not overlap. Line ends of
// the old text are kept.
EditOutcome ApplyBlocks(std::string_view text, const std::vector<EditBlock>& blocks);

}  // namespace kernelwright::tools
