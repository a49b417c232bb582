// A program graph as JSON text, for debugging, golden files and bug reports. Not a stored format: the stored one is
// proto/kernelwright/v1/ir.proto.
#pragma once

#include <string>

#include "daemon/kernels/program.h"

namespace kernelwright::kernels {

// Indented JSON; fields with their default value are left out, keys are sorted.
std::string ProgramJson(const Program& program);
std::string PallasCallJson(const PallasCall& call);

}  // namespace kernelwright::kernels
