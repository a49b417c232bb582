// Prefixes as they appear in dumps of v4 to tpu7x; see op_traits.h.
#include "daemon/profile/op_traits.h"

#include <algorithm>
#include <array>

namespace kernelwright::profile {
namespace {

template <size_t n>
bool StartsWithAny(std::string_view opcode, const std::array<std::string_view, n>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](std::string_view p) { return opcode.starts_with(p); });
}

}  // namespace

bool IsCast(std::string_view opcode) {
  static constexpr std::array<std::string_view, 3> kPrefixes = {"vunpack", "vpack", "vcvt"};
  return StartsWithAny(opcode, kPrefixes);
}

bool IsRelayout(std::string_view opcode) {
  static constexpr std::array<std::string_view, 7> kPrefixes = {"vxpose",   "vrot",   "vperm",          "vcombine",
                                                                "vsublane", "vbcast", "vlane.broadcast"};
  return StartsWithAny(opcode, kPrefixes);
}

bool IsProduct(std::string_view opcode) { return opcode.starts_with("vmatmul"); }

bool IsF32Product(std::string_view opcode) {
  return IsProduct(opcode) && opcode.substr(7).find("f32") != std::string_view::npos;
}

}  // namespace kernelwright::profile
