// What is wrong in the body of a kernel although it compiles, as far as its graph alone can prove: sums over memory
// that nothing initialised, copies that nobody waits for, stores that no step reaches. Whatever a look at the graph
// cannot decide stays silent; the interpreter decides it with values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/cost/chips.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

// Errors: D15 (output block visited again), D16 (sum over a parallel axis), D30 (uninitialised accumulator), D32 (slice
// past the end), D31 (tail of a block enters a reduction),
// D33 (store under a step that never comes), D34 (copy without wait), D36 (semaphore signalled and never waited for),
// D37 (store to an input; a warning where it is a window of a grid step). Warnings: D38 (sum kept in 16 bits), D143
// (addend rounded to 16 bits). With a chip also information D130 (type that its MXU lacks) and hint D142 (f32 product
// in bf16 passes). `texts`: path -> text of the user's files, for the places. A call whose body was not traced gives
// nothing. Takes milliseconds: the grid is walked for a bounded number of steps.
std::vector<Diagnostic> LintKernel(const PallasCall& call, const std::map<std::string, std::string>& texts,
                                   const cost::Chip* chip = nullptr);

}  // namespace kernelwright::diagnose
