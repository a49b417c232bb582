// How much memory this process holds.
#pragma once

#include <cstdint>

namespace kernelwright::service {

// Resident set of this process in bytes; 0 when the kernel does not say.
uint64_t ResidentBytes();

}  // namespace kernelwright::service
