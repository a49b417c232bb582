// What a compiled kernel keeps in VMEM, from the compiler's own list of allocations.
#pragma once

#include <cstdint>
#include <optional>

#include "daemon/cost/detailed_cost.h"
#include "daemon/profile/report.h"

namespace kernelwright::profile {

// `kernel_limit`: the kernel's vmem_limit_bytes. Spill slots are not in that list; they are counted in the schedule.
VmemMap MapVmem(const cost::UnitDetail& unit, const cost::Chip& chip, std::optional<int64_t> kernel_limit);

}  // namespace kernelwright::profile
