// One rank of the doctor's job.
#pragma once

#include <string>

#include "doctor/findings.h"
#include "doctor/rank_tests.h"

namespace falcon::doctor {

struct DoctorOptions {
  int repeat = 1;
  std::string neighbours;  ///< file, read by rank 0; empty: all ranks are one group
  TestSpans spans;
};

/// Measures together with the other ranks, and returns what all measured: the same on all ranks, for all end with the
/// same messages. Errors: invalidArgument for a wrong file, others where the ranks lost each other.
Result<Measurements> runDoctor(const DoctorOptions& options, Rank& rank);

}  // namespace falcon::doctor
