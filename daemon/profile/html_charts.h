// The page's pictures, as inline SVG.
#pragma once

#include <string>

#include "daemon/profile/report.h"

namespace kernelwright::profile {

// Log-log: the roof of the chip, the kernel's place, and how far below the roof it is.
std::string RooflineSvg(const Roofline& roofline, const std::string& name);

// One row per unit over the time of a step, waits and copies below. `anchor` + line is the id of a source row.
std::string TimelineSvg(const Step& step, const std::string& anchor);

// VMEM by allocation against the limit.
std::string VmemSvg(const VmemMap& vmem);

}  // namespace kernelwright::profile
