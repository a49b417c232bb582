// See register_pressure.h. Names are `%v<virtual>_v<physical>`; the result of an operation stands in front of " = ".
#include "daemon/profile/register_pressure.h"

#include <array>
#include <string_view>

#include "daemon/profile/report.h"

namespace kernelwright::profile {
namespace {

struct Life {
  int64_t from = -1;  // bundle; -1: not in use
  int64_t last = -1;
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Calls `use(physical register, is result)` for each vector register in the text of an operation.
template <typename Use>
void ForEachRegister(std::string_view text, Use use) {
  size_t at = 0;
  while ((at = text.find("%v", at)) != std::string_view::npos) {
    const bool result = at == 0;
    at += 2;
    size_t i = at;
    while (i < text.size() && IsDigit(text[i])) ++i;
    if (i == at || i + 2 >= text.size() || text[i] != '_' || text[i + 1] != 'v') continue;
    i += 2;
    int physical = 0;
    const size_t digits = i;
    for (; i < text.size() && IsDigit(text[i]) && physical < 1000; ++i) physical = physical * 10 + (text[i] - '0');
    if (i > digits && physical < kVectorRegisters) use(physical, result);
    at = i;
  }
}

}  // namespace

std::vector<uint8_t> RegisterPressure(const compiler::BundleProgram& program) {
  const size_t count = program.bundle_count();
  std::vector<int> change(count + 1, 0);
  std::array<Life, kVectorRegisters> lives;
  const auto end = [&](Life& life) {
    if (life.from < 0) return;
    ++change[static_cast<size_t>(life.from)];
    --change[static_cast<size_t>(life.last) + 1];
    life = {};
  };
  for (size_t b = 0; b < count; ++b) {
    const auto now = static_cast<int64_t>(b);
    // All operations of a bundle read before any of them writes.
    for (const bool results : {false, true}) {
      for (uint32_t i = program.op_begin(b); i < program.op_end(b); ++i) {
        ForEachRegister(program.op_text(program.ops()[i]), [&](int physical, bool result) {
          Life& life = lives[static_cast<size_t>(physical)];
          if (result != results) return;
          if (result) end(life);
          if (life.from < 0) life.from = now;
          life.last = now;
        });
      }
    }
  }
  for (Life& life : lives) end(life);
  std::vector<uint8_t> live(count, 0);
  int now = 0;
  for (size_t b = 0; b < count; ++b) {
    now += change[b];
    // A register that is read for the last time in the bundle that writes it anew has two lives there.
    live[b] = static_cast<uint8_t>(now > kVectorRegisters ? kVectorRegisters : now);
  }
  return live;
}

}  // namespace kernelwright::profile
