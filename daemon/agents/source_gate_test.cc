#include "daemon/agents/source_gate.h"

#include "gtest/gtest.h"

namespace kernelwright::agents {
namespace {

constexpr const char* kOriginal = R"py(import functools
import jax.numpy as jnp
from jax.experimental import pallas as pl

def f(x, bm=128):
    return pl.pallas_call(kernel, grid=(x.shape[0] // bm,))(x)
)py";

std::string With(const std::string& extra) { return kOriginal + extra; }

TEST(SourceGateTest, ChangedLiteralPasses) {
  std::string candidate = kOriginal;
  candidate.replace(candidate.find("128"), 3, "512");
  EXPECT_EQ(CheckSource("k.py", kOriginal, candidate, "f").status, GateStatus::kPass);
}

TEST(SourceGateTest, EveryForbiddenConstructIsNamedWithItsLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"\nimport os\n", "import: os"},
      {"\nfrom subprocess import run\n", "import: subprocess"},
      {"\ndef g():\n    return eval('1')\n", "call: eval"},
      {"\ndef g(x):\n    return jax.pure_callback(h, x, x)\n", "call: jax.pure_callback"},
      {"\ndef g(x):\n    return jax.experimental.io_callback(h, x, x)\n", "call: jax.experimental.io_callback"},
      {"\ntry:\n    import fast\nexcept ImportError:\n    pass\n", "try: try/except"},
      {"\n@functools.lru_cache\ndef g():\n    pass\n", "cache: @functools.lru_cache"},
      {"\ntable = jnp.arange(8)\n", "module array: jnp.arange(8)"},
      {"\njnp.dot = None\n", "patch: jnp.dot"},
      {"\ndef g(x):\n    return pl.pallas_call(k, interpret=True)(x)\n", "interpret: interpret=True"},
      {"\ndef g():\n    global last\n    last = 1\n", "global: global last"},
      {"\ndef g():\n    open('answer').read()\n", "call: open"},
      {"\ndef g(x):\n    return x.__class__\n", "call: __class__"},
  };
  for (const auto& [extra, expected] : cases) {
    const GateResult result = CheckSource("k.py", kOriginal, With(extra), "f");
    EXPECT_EQ(result.status, GateStatus::kFail) << extra;
    EXPECT_NE(result.reason.find(expected), std::string::npos) << result.reason;
    EXPECT_NE(result.reason.find("k.py:"), std::string::npos) << result.reason;
  }
}

TEST(SourceGateTest, WhatTheUserAlreadyHadIsAllowedAsOftenAsItWasThere) {
  const std::string original = With("\nimport os\n");
  EXPECT_EQ(CheckSource("k.py", original, original, "f").status, GateStatus::kPass);
  EXPECT_EQ(CheckSource("k.py", original, original + "\nimport os\n", "f").status, GateStatus::kFail);
}

TEST(SourceGateTest, SignatureMustStay) {
  std::string candidate = kOriginal;
  candidate.replace(candidate.find("bm=128"), 6, "bm=128, cache=None");
  EXPECT_EQ(CheckSource("k.py", kOriginal, candidate, "f").status, GateStatus::kFail);
  EXPECT_EQ(CheckSource("k.py", kOriginal, "x = 1\n", "f").status, GateStatus::kFail);
}

TEST(SourceGateTest, SyntaxErrorFails) {
  EXPECT_EQ(CheckSource("k.py", kOriginal, With("def g(:\n"), "f").status, GateStatus::kFail);
}

}  // namespace
}  // namespace kernelwright::agents
