// What an interrupted run has found so far: a line that says of which run, then one for each injection.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/owned.h"
#include "injections/scoring.h"

namespace falcon::injections {

class ResultsFile {
 public:
  /// Reads what the file holds, or begins it; locked for this object's life. Throws std::runtime_error where it is of
  /// another seed, another one has it locked, or it cannot be used.
  ResultsFile(std::string path, std::uint64_t seed);

  const std::vector<Row>& rows() const { return rows_; }
  /// On the disk when this returns.
  void add(const Row& row);

 private:
  void append(const std::string& line) const;

  const std::string path_;
  const FileDescriptor lock_;
  std::vector<Row> rows_;
};

}  // namespace falcon::injections
