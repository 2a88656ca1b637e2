#include <unistd.h>

#include <cstdio>
#include <exception>

#include "train/matrix.h"
#include "train/options.h"
#include "train/trainer.h"

int main(int argc, char** argv) {
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
