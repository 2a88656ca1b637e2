#include "fuzz_target.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace falcon::fuzz {

void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", promise);
  std::abort();
}

}  // namespace falcon::fuzz

/// With FALCON_FUZZ_SEEDS=FOLDER: writes the seeds there and ends.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // Refusals are logged for people; nobody reads a million of them.
  setenv("NCCL_DEBUG_FILE", "/dev/null", 1);
  const char* folder = std::getenv("FALCON_FUZZ_SEEDS");
  if (!folder) return 0;
  int number = 0;
  for (const std::string& seed : falcon::fuzz::seeds()) {
    falcon::fuzz::run(seed);
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(number++), std::ios::binary) << seed;
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  falcon::fuzz::run({reinterpret_cast<const char*>(data), size});
  return 0;
}
