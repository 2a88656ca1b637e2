// Which algorithms there are, taken from the library's own list, and how it is made to use one: by a tuning file.
#pragma once

#include <string>
#include <vector>

#include "call_spec.h"

namespace falcon::property {

/// All that a tuning file may name for any operation between ranks that are `over` each other: "ring", "flat" ...
std::vector<std::string> algorithmsOver(Over over);
/// Whether a tuning file may name `algorithm` for this one.
bool hasAlgorithm(What what, Over over, const std::string& algorithm);

/// A tuning file that gives `algorithm` to every operation that has it; goes with the object.
class TuningFile {
 public:
  explicit TuningFile(const std::string& algorithm);
  ~TuningFile();
  TuningFile(const TuningFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace falcon::property
