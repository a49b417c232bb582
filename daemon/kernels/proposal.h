// What a lift or a rewrite rule says: a change of the user's program that may make it faster, as edits with the reason,
// the evidence and what it does to the values; or why the rule does not apply here. A proposal is a claim about
// nothing: the loop compiles, checks and estimates it like every other candidate.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "daemon/kernels/edits.h"
#include "daemon/kernels/inputs.h"
#include "daemon/kernels/program.h"
#include "daemon/kernels/syntax.h"

namespace kernelwright::cost {
struct Chip;
}
namespace kernelwright::profile {
struct ProfileReport;
}

namespace kernelwright::kernels {

// What a change may do to the values. The user's setting says which are allowed; each includes those before it.
enum class Exactness { kBitEqual, kReassociation, kLowerPrecision };
const char* ExactnessName(Exactness exactness);  // "bit-equal", "reassociation", "lower-precision"

// A range of lines in a file, from 1, end inclusive.
struct LineRange {
  std::string file;
  int line = 0;
  int end_line = 0;
};

struct NewFile {
  std::string path;  // absolute; must not exist
  std::string text;
};

struct Proposal {
  std::string rule;          // "lift-matmul", "scratch-accumulator": the rule's name, stable
  std::string what;          // for a table: "accumulate in VMEM scratch"
  LineRange place;           // what it is about, in the text it was made from
  std::string reason;        // why this should help, in the user's terms
  std::string evidence;      // the numbers that it rests on, each with its class
  double expected_gain = 0;  // ratio of times, 1.3: 1.3 times as fast; 0: unknown
  Exactness exactness = Exactness::kBitEqual;
  std::vector<TextEdit> edits;
  std::vector<NewFile> new_files;
  std::vector<InputSpec> check_inputs;  // the inputs in the form that reduced check shapes are made from, where rows
                                        // are one dimension; empty: as they are
};

// A rule that looked and does not apply, and why: shown in the report.
struct RuleRefusal {
  std::string rule;
  std::string reason;
  LineRange place;
};

// What a rule may look at. Everything outlives the call.
struct ProposalContext {
  const std::vector<std::unique_ptr<SourceFile>>& files;  // the user's files of the program, as they are now
  std::string file;                                       // entry file, absolute
  std::string function;                                   // qualified name
  const Program& program;                                 // traced from `files` at the full inputs
  const std::vector<InputSpec>& inputs;
  const cost::Chip& chip;
  const profile::ProfileReport* profile = nullptr;  // of the program on `chip`; null when it could not be made
  Exactness allowed = Exactness::kReassociation;
};

struct Proposals {
  std::vector<Proposal> proposals;
  std::vector<RuleRefusal> refusals;
};

}  // namespace kernelwright::kernels
