// A kernel's references, and a walk over its graph that knows behind which operand of which operation, at any depth of
// loops and branches, which of them stands.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

struct KernelRef {
  enum class Kind { kPrefetch, kInput, kOutput, kScratch, kLocal };  // kLocal: of a run_scoped
  Kind kind = Kind::kScratch;
  TensorType type;
  size_t position = 0;   // parameter of the kernel; unused for kLocal
  int block = -1;        // in PallasCall::blocks, for inputs and outputs
  bool aliased = false;  // input and output share memory
};

// One per parameter of the kernel, in order. Empty when the body was not traced as the call says.
std::vector<KernelRef> KernelRefs(const PallasCall& call);

// Which operand of `operation` an input of one of its regions is: an index, or -1 for one that it makes itself.
int OperandOfRegionInput(const Operation& operation, size_t region, size_t input);

std::string TextAttribute(const Operation& operation, std::string_view name);
int64_t IntAttribute(const Operation& operation, std::string_view name, int64_t otherwise);
std::vector<int64_t> IntsAttribute(const Operation& operation, std::string_view name);

// Whether the operation writes to the reference that is its operand number `operand`.
bool WritesOperand(const Operation& operation, size_t operand);

struct Enclosing {
  const Operation* operation = nullptr;
  size_t region = 0;
};

// What the walk visits. `refs`: per operand the index of the reference in the list of all, or -1.
struct Visited {
  const Operation& operation;
  const std::vector<int>& refs;
  const std::vector<Enclosing>& path;  // outermost first
};

// Visits every operation of the kernel, regions included. References that regions make are appended to `refs`.
void WalkKernel(const PallasCall& call, std::vector<KernelRef>& refs, const std::function<void(const Visited&)>& visit);

}  // namespace kernelwright::diagnose
