// The entry of libFuzzer for one target, whose name is given at compile time.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const kernelwright::fuzz::Target* const target = kernelwright::fuzz::FindTarget(KW_FUZZ_TARGET);
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
