// The compiled-in identity; its own file because it changes with every commit. See build_identity.h.
#include "daemon/service/build_identity.h"

#include "kernelwright/build_info.h"

namespace kernelwright::service {

BuildIdentity ThisBuild() { return {kVersion, kCommitCount, kCommit}; }

}  // namespace kernelwright::service
