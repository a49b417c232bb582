// Operands of a kernel: which one a text means, what the kernel calls it. For locate*.cc.
#pragma once

#include <optional>
#include <string>

#include "daemon/diagnose/catalogue_pattern.h"
#include "daemon/diagnose/locate_call.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

// The operand that the captures name ("operand": "args[0]" or a number, then "operand_kind" says "output" or "input"),
// or a ref's name), else, for texts that name none, the one with the largest blocks of the traced call. Texts count
// scalar-prefetch operands with the inputs; specs do not.
std::optional<OperandPath> OperandOf(const Captures& captures, const PallasCallSite& site, const PallasCall* call,
                                     bool largest_if_unnamed);

// "input 0 (`x_ref`)"; without the name when the kernel's parameters are not known.
std::string OperandName(const OperandPath& operand, const PallasCallSite& site, const PallasCall* call);

// Names of the kernel's positional parameters, in order; empty when it takes *refs.
std::vector<std::string> KernelParameters(const kernels::Node& kernel);

// Bytes of one block in VMEM without padding; 0 for types of unknown width.
double BlockBytes(const BlockMapping& block);

}  // namespace kernelwright::diagnose
