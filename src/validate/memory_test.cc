#include "validate/memory_test.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/system_error.h"

namespace falcon::validate {

Result<MemoryScore> testMemory(const Clock& clock, Nanoseconds span, std::size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Error::system("no memory for a test of {} bytes: {}", bytes, reasonOf(errno));
  char* const from = static_cast<char*>(memory);
  const std::size_t half = bytes / 2;
  std::memset(memory, 1, bytes);  // untouched pages would all be one page of zeros

  MemoryScore score;
  const ProcessorStat before = readProcessorStat();
  const auto start = clock.now();
  // Pieces take milliseconds at most, so the span ends on time.
  const std::size_t piece = std::min(half, std::size_t{4} << 20);
  double moved = 0;
  for (std::size_t at = 0; score.wall < span; at = at + 2 * piece <= half ? at + piece : 0) {
    std::memcpy(from + half + at, from + at, piece);
    moved += 2 * static_cast<double>(piece);
    score.wall = clock.now() - start;
  }
  score.stat = readProcessorStat() - before;
  munmap(memory, bytes);
  score.bytesPerSecond = moved / seconds(score.wall);
  return score;
}

}  // namespace falcon::validate
