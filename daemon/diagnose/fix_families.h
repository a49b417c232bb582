// The families of fixes, one file each. Every function returns alternatives for a diagnostic of its own ids, and
// nothing for code that it does not understand.
#pragma once

#include <vector>

#include "daemon/diagnose/fix_source.h"
#include "daemon/diagnose/fixes.h"

namespace kernelwright::diagnose {

struct FixRequest {
  const Diagnostic& diagnostic;
  const FixContext& context;
  const FixSource& source;
};
using Fixes = std::vector<Fix>;

// fix_blocks.cc: sizes of blocks and of the grid.
Fixes RoundBlocks(const FixRequest& request);   // D01, D03, D20
Fixes CoverOutput(const FixRequest& request);   // D17
Fixes SqueezeBlock(const FixRequest& request);  // D08

// fix_index_map.cc
Fixes AppendBlockIds(const FixRequest& request);     // D05
Fixes MatchGridIds(const FixRequest& request);       // D06, D07
Fixes DivideWhole(const FixRequest& request);        // D09
Fixes DropBlockFactor(const FixRequest& request);    // D14
Fixes MoveReductionLast(const FixRequest& request);  // D15

// fix_params.cc: compiler parameters.
Fixes PadSemantics(const FixRequest& request);    // D13
Fixes MakeArbitrary(const FixRequest& request);   // D16
Fixes LowerVmemLimit(const FixRequest& request);  // D93

// fix_steps.cc: what happens in which grid step, and when a copy has landed.
Fixes ZeroAccumulator(const FixRequest& request);  // D30
Fixes MaskTail(const FixRequest& request);         // D31
Fixes StoreAtLastStep(const FixRequest& request);  // D33
Fixes WaitForCopy(const FixRequest& request);      // D34, D36

// fix_body.cc: Python and tracing.
Fixes StoreResult(const FixRequest& request);      // D50
Fixes GuardStatements(const FixRequest& request);  // D52
Fixes CastStored(const FixRequest& request);       // D53
Fixes KeepDims(const FixRequest& request);         // D54
Fixes LoopOverRows(const FixRequest& request);     // D57
Fixes DropPlaceholder(const FixRequest& request);  // D58
Fixes IndexTheRef(const FixRequest& request);      // D77
Fixes DropCheckpoint(const FixRequest& request);   // D110

// fix_ops.cc: operations that the TPU lowering lacks, written with those that it has.
Fixes ReplaceOperation(const FixRequest& request);        // D100, D104 … D108
Fixes SelectInsteadOfScatter(const FixRequest& request);  // D102
Fixes IntegerIota(const FixRequest& request);             // D112

// fix_types.cc
Fixes NarrowTo32Bits(const FixRequest& request);       // D120
Fixes AvoidFloat16(const FixRequest& request);         // D121
Fixes DropPrecision(const FixRequest& request);        // D123, D125
Fixes AccumulateIn32Bits(const FixRequest& request);   // D124
Fixes ComputeWide(const FixRequest& request);          // D132, D134, D135, D136, D137
Fixes ExpandMaskAsInteger(const FixRequest& request);  // D138
Fixes CarryMaskAsInteger(const FixRequest& request);   // D139

}  // namespace kernelwright::diagnose
