// The listing is searched for "#allocationN [", which only definitions have; a definition is one line.
#include "daemon/compiler/allocations.h"

#include <charconv>

namespace kernelwright::compiler {
namespace {

// Value of `key` up to `end`; empty when the key is not there.
std::string_view Field(std::string_view line, std::string_view key, std::string_view end) {
  const size_t at = line.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = line.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(end));
}

}  // namespace

std::vector<Allocation> ParseAllocations(std::string_view text) {
  constexpr std::string_view kName = "#allocation";
  std::vector<Allocation> out;
  size_t at = 0;
  while ((at = text.find(kName, at)) != std::string_view::npos) {
    const std::string_view line = text.substr(at + kName.size(), text.find('\n', at) - at - kName.size());
    at += kName.size();
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || !line.substr(space).starts_with(" [shape = ")) continue;
    Allocation allocation;
    allocation.name = std::string(line.substr(0, space));
    allocation.shape = std::string(Field(line, "shape = '", "'"));
    allocation.space = std::string(Field(line, "space=", ",]"));
    allocation.tag = std::string(Field(line, "tag = '", "'"));
    std::string_view size = Field(line, ", size = ", ",]");
    int base = 10;
    if (size.starts_with("0x")) {
      size.remove_prefix(2);
      base = 16;
    }
    std::from_chars(size.data(), size.data() + size.size(), allocation.size, base);
    out.push_back(std::move(allocation));
  }
  return out;
}

}  // namespace kernelwright::compiler
