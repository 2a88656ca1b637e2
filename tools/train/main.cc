#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <system_error>

#include "train/matrix.h"
#include "train/options.h"
#include "train/trainer.h"

namespace {

/// Begins anew where OpenBLAS, which chooses its kernels as it is loaded, could have chosen better ones.
void useFastKernels(char** argv) {
  const char* const kernels = falcon::train::fasterKernels();
  if (!kernels || std::getenv("OPENBLAS_CORETYPE")) return;
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed && ::setenv("OPENBLAS_CORETYPE", kernels, 1) == 0) ::execv(program.c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
  useFastKernels(argv);
  const auto parsed = falcon::train::parseOptions(argc, argv);
  if (!parsed.options) return parsed.exitCode;
  try {
    falcon::train::useOneBlasThread();
    return falcon::train::Trainer(*parsed.options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "falcon-train: rank %d: %s\n", parsed.options->inJob.rank, error.what());
    // Not exit(): a library that has just failed must not get the chance to wait for peers in a destructor.
    std::fflush(nullptr);
    ::_exit(1);
  }
}
