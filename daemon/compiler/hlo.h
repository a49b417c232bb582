// Parser of the `TLP-hlo` dump: the scheduled HLO module around the kernels. Two uses: instructions that compute the
// same share one schedule dump and are found through a signature here, and metadata leads from an instruction to a
// source line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/base/status.h"

namespace kernelwright::compiler {

struct HloInstruction {
  std::string name;    // without "%"
  std::string type;    // with layout, as printed
  std::string opcode;  // "fusion", "custom-call", "copy", …
  std::vector<std::string> operands;
  std::string calls;       // computation of a fusion, call or while body; empty when there is none
  std::string attributes;  // what decides the code beyond types: dimensions, slices, the body of a custom call
  std::string op_name;     // metadata
  std::string file;        // source of the innermost frame; empty when unknown
  int line = 0;
  bool is_root = false;
  std::string literal;  // of a constant, or what else is between the parentheses of an instruction without operands
};

struct HloComputation {
  std::string name;
  bool is_entry = false;
  std::vector<HloInstruction> instructions;
};

struct HloModule {
  std::string name;
  std::vector<HloComputation> computations;

  const HloInstruction* Find(std::string_view instruction) const;
  // A text that is equal for two instructions exactly when they do the same to operands of the same types: what the
  // compiler uses to emit one schedule for both. Empty when the instruction is unknown.
  std::string Signature(std::string_view instruction) const;
};

// Errors name the line. Lines of a kind that is not known are skipped.
Expected<HloModule> ParseHlo(std::string_view text);

}  // namespace kernelwright::compiler
