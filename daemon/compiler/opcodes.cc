// Which unit issues an instruction, from the prefix of its opcode. The table was made from dumps of v4 to tpu7x; an
// opcode outside of it is reported as unknown rather than guessed.
#include <array>
#include <utility>

#include "daemon/compiler/bundles.h"

namespace kernelwright::compiler {
namespace {

using Entry = std::pair<std::string_view, Unit>;

// Looked up in order, first match wins: longer prefixes stand before shorter ones that they contain.
constexpr std::array kPrefixes = {
    Entry{"vmatmul", Unit::kMxu},
    Entry{"vmatpush", Unit::kMxu},
    Entry{"vmatprep", Unit::kMxu},
    Entry{"vllmr", Unit::kMxu},
    Entry{"vdwg", Unit::kMxu},
    Entry{"vlmr", Unit::kMxu},
    Entry{"vsync", Unit::kSync},
    Entry{"vwait", Unit::kSync},
    Entry{"sfence", Unit::kSync},
    Entry{"vtrace", Unit::kControl},
    Entry{"vsettm", Unit::kControl},
    Entry{"vdelay", Unit::kControl},
    Entry{"vsetiar", Unit::kControl},
    Entry{"vsetrng", Unit::kControl},
    Entry{"vnop", Unit::kControl},
    Entry{"vpop.eup", Unit::kEup},
    Entry{"vpow2", Unit::kEup},
    Entry{"vexp2", Unit::kEup},
    Entry{"vrcp", Unit::kEup},
    Entry{"vrsqrt", Unit::kEup},
    Entry{"vtanh", Unit::kEup},
    Entry{"vlog2", Unit::kEup},
    Entry{"verf", Unit::kEup},
    Entry{"vsin", Unit::kEup},
    Entry{"vcos", Unit::kEup},
    Entry{"vsigshft", Unit::kEup},
    Entry{"vweird", Unit::kVpu},
    Entry{"vpop.xlane", Unit::kXlu},
    Entry{"vpop.trf", Unit::kXlu},
    Entry{"vpop.permute", Unit::kXlu},
    Entry{"vpop.f32.mr", Unit::kMxu},
    Entry{"vpop.s32.mr", Unit::kMxu},
    Entry{"vpop.bf16.mr", Unit::kMxu},
    Entry{"vpop.f32.f32.mr", Unit::kMxu},
    Entry{"vpop.erf", Unit::kEup},
    Entry{"vpop.ccrf", Unit::kScalar},
    Entry{"vpop", Unit::kMxu},
    Entry{"vxpose", Unit::kXlu},
    Entry{"vrot", Unit::kXlu},
    Entry{"vperm", Unit::kXlu},
    Entry{"vsetperm", Unit::kXlu},
    Entry{"vbcast", Unit::kXlu},
    Entry{"vlane.broadcast", Unit::kXlu},
    Entry{"vcombine", Unit::kXlu},
    Entry{"vsublane", Unit::kXlu},
    Entry{"vphi", Unit::kControl},
    Entry{"vst", Unit::kStore},
    Entry{"vld", Unit::kLoad},
    Entry{"vpush", Unit::kVpu},
    Entry{"dma.done", Unit::kSync},
    Entry{"dma.", Unit::kDma},
    Entry{"sbr.", Unit::kControl},
    Entry{"sphi", Unit::kControl},
    Entry{"pphi", Unit::kControl},
    Entry{"shalt", Unit::kControl},
    Entry{"sdelay", Unit::kControl},
    Entry{"inlined_call", Unit::kControl},
    Entry{"compiler-scheduling-barrier", Unit::kControl},
    Entry{"reloc", Unit::kScalar},
    Entry{"scalar_", Unit::kScalar},
    Entry{"int_to_ptr", Unit::kScalar},
    Entry{"ptr_to_int", Unit::kScalar},
    Entry{"strace", Unit::kControl},
};

// Stems of vector ALU instructions: the opcode up to its first dot.
constexpr std::array<std::string_view, 64> kVectorAlu = {
    "vadd",     "vsub",    "vmul",    "vand",   "vor",   "vxor",    "vsel",   "vcmp",     "vmax",   "vmin",
    "vmov",     "vshll",   "vshrl",   "vshra",  "vpack", "vunpack", "vcvt",   "vclz",     "vc",     "vlaneseq",
    "vstv",     "vrng",    "vmor",    "vmand",  "vmxor", "vmneg",   "vmnand", "vmnor",    "vmmov",  "vneg",
    "vabs",     "vclamps", "vclamp",  "vfloor", "vceil", "vround",  "vtrunc", "vcreate",  "vsmask", "vrelu",
    "vmsk",     "vrem",    "vdiv",    "vnez",   "vpcnt", "vcnt",    "vnot",   "vmask",    "vfma",   "vmad",
    "vaddc",    "vsubb",   "vadds",   "vsubs",  "vavg",  "vclass",  "vmpack", "vmunpack", "vcmask", "vpopc",
    "vbitcast", "vext",    "vselect", "vrsub",
};

// Scalar and predicate unit, up to the first dot.
constexpr std::array<std::string_view, 46> kScalarStems = {
    "sadd", "ssub", "smul",  "smulhi", "sand", "sor",   "sxor", "sshll",  "sshrl", "sshra",  "sshllo", "smin",
    "smax", "smov", "scopy", "sld",    "sst",  "scmp",  "sc",   "spop",   "sclz",  "scvt",   "ssel",   "sdivrem",
    "sdiv", "srem", "sneg",  "snot",   "sabs", "spcnt", "stz",  "sfloor", "sceil", "sround", "sweird", "ssettle",
    "por",  "pand", "pnand", "pnor",   "pxor", "pneg",  "pmov", "pxnor",  "psel",  "srng",
};

}  // namespace

const char* UnitName(Unit unit) {
  switch (unit) {
    case Unit::kMxu:
      return "MXU";
    case Unit::kVpu:
      return "VPU";
    case Unit::kXlu:
      return "XLU";
    case Unit::kEup:
      return "EUP";
    case Unit::kLoad:
      return "load";
    case Unit::kStore:
      return "store";
    case Unit::kScalar:
      return "scalar";
    case Unit::kDma:
      return "DMA";
    case Unit::kSync:
      return "sync";
    case Unit::kControl:
      return "control";
    case Unit::kUnknown:
      break;
  }
  return "unknown";
}

Unit UnitOfOpcode(std::string_view opcode) {
  // Operations that name the cross-lane unit run there, whatever their stem (`vadd.xlane.f32.xlu0`).
  if (opcode.find(".xlane") != std::string_view::npos || opcode.find(".xlu") != std::string_view::npos) {
    return Unit::kXlu;
  }
  const std::string_view stem = opcode.substr(0, opcode.find('.'));
  if (stem != "vpop") {
    for (const std::string_view known : kVectorAlu) {
      if (stem == known) return Unit::kVpu;
    }
  }
  for (const std::string_view known : kScalarStems) {
    if (stem == known) return Unit::kScalar;
  }
  for (const auto& [prefix, unit] : kPrefixes) {
    if (opcode.starts_with(prefix)) return unit;
  }
  return Unit::kUnknown;
}

}  // namespace kernelwright::compiler
