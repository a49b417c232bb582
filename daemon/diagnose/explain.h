// From an error of jax, the compiler or the interpreter to a diagnostic in the user's file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/diagnose/catalogue.h"
#include "daemon/diagnose/diagnostic.h"
#include "daemon/diagnose/locate.h"
#include "daemon/kernels/code_error.h"
#include "daemon/kernels/program.h"

namespace kernelwright::diagnose {

// One diagnostic for the error, for the chips that it was seen on; "D000" with the whole text when the catalogue does
// not know it. None when the error is our own doing (a lowering that was not told the chip): the caller has to ask
// again, it is no verdict on the kernel. `texts`: path -> text of the user's files. `calls`: kernels as traced, with
// their bodies when tracing succeeded, else as far as they were seen; may be empty.
std::vector<Diagnostic> Explain(const Catalogue& catalogue, const CodeError& error,
                                const std::map<std::string, std::string>& texts, const std::vector<PallasCall>& calls,
                                const std::vector<std::string>& chips, Stage stage);

// The same with files that are already parsed, for several errors of one state of the files.
std::vector<Diagnostic> Explain(const Catalogue& catalogue, const CodeError& error, const Locator& locator,
                                const std::vector<PallasCall>& calls, const std::vector<std::string>& chips,
                                Stage stage);

}  // namespace kernelwright::diagnose
