// The one binary: every command, and the daemon, over the engine of this build.
#include "daemon/agents/engine.h"
#include "daemon/cli/context.h"

int main(int argc, char** argv) { return kernelwright::cli::RunProgram(argc, argv, &kernelwright::agents::MakeEngine); }
