// How many vector registers hold a value that is still needed, bundle by bundle.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/compiler/bundles.h"

namespace kernelwright::profile {

// One number per bundle. Read off the physical registers in the text: a register is in use from a bundle that writes it
// to the last one that reads it before the next write. Values that live around a loop count from their first mention,
// so the number is a lower bound there.
std::vector<uint8_t> RegisterPressure(const compiler::BundleProgram& program);

}  // namespace kernelwright::profile
