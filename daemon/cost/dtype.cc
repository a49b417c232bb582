// A name ends in its width; the few that do not, and those with a suffix behind the width, are listed.
#include "daemon/cost/dtype.h"

namespace kernelwright::cost {

std::optional<int> DtypeBits(std::string_view dtype) {
  if (dtype == "bool") return 8;
  if (dtype.starts_with("float8_")) return 8;
  if (dtype.starts_with("float4_")) return 4;
  for (const std::string_view stem : {"int", "uint", "float", "bfloat", "complex"}) {
    if (!dtype.starts_with(stem)) continue;
    const std::string_view width = dtype.substr(stem.size());
    for (const auto& [text, bits] :
         {std::pair{std::string_view("2"), 2}, {"4", 4}, {"8", 8}, {"16", 16}, {"32", 32}, {"64", 64}, {"128", 128}}) {
      if (width == text) return bits;
    }
  }
  return std::nullopt;
}

}  // namespace kernelwright::cost
