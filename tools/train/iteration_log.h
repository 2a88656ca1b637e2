// What the trainer records of each iteration, for programs that watch it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace falcon::train {

struct IterationRecord {
  std::uint64_t iteration = 0;
  double loss = 0;
  double start = 0;  ///< CLOCK_MONOTONIC seconds
  double end = 0;
  int microBatches = 0;          ///< of this rank
  double processor = 0;          ///< seconds that this process used
  const char* health = nullptr;  ///< the job's, as it was told where the iteration began; null: nobody told
  unsigned int changed = 0;      ///< then, what is another than in the one before: NCCL_FALCON_CHANGED_...
};

/// One JSON line per iteration, complete in the file as soon as it is written.
class IterationLog {
 public:
  /// Empty path: no log. "%r" in the path stands for the rank; without it only rank 0 writes. Throws
  /// std::runtime_error if the file cannot be written.
  /// What is in the file stays until begin().
  IterationLog(const std::string& path, int rank);
  /// @param goesOn  after what earlier runs have written; else the file is emptied
  void begin(bool goesOn);
  void write(const IterationRecord& record);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace falcon::train
