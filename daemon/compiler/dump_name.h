// File names of libtpu's text dumps: `<nanoseconds>-<unit>-<NN>-<label>.txt`, or `<nanoseconds>-TLP-hlo.txt`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kernelwright::compiler {

struct DumpName {
  std::string unit;   // HLO name of the kernel or fusion, "TLP", "<late-initialization>", "<late-finalization>"
  std::string label;  // "final_bundles", "hlo", …
};

// Takes a path or a bare name. Nothing for a name of another form.
std::optional<DumpName> ParseDumpName(std::string_view name);

inline constexpr std::string_view kFinalBundles = "final_bundles";
inline constexpr std::string_view kUtilization = "final_hlo-static-per-bundle-utilization";
inline constexpr std::string_view kScheduleAnalysis = "schedule-analysis_final_bundles";
inline constexpr std::string_view kAllocations = "pre-finalize-registers-and-allocations";
inline constexpr std::string_view kHlo = "hlo";

}  // namespace kernelwright::compiler
