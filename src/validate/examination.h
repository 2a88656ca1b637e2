// What the tests of a whole job found, as it travels to who asked for them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/cause.h"
#include "validate/link_plan.h"

namespace falcon::validate {

/// One rank's tests; NaN: not measured.
struct ExaminedRank {
  Rank rank = -1;  ///< the job's
  RankSite site;
  double gigaflops = unknown;
  double memoryRate = unknown;  ///< bytes per second
  CauseEvidence evidence;
};

struct Examination {
  double heldSeconds = 0;           ///< how long the job stood still for it
  std::vector<ExaminedRank> ranks;  ///< rising
  std::vector<LinkMeasurement> links;
};

std::string encode(const Examination& examination);
/// Errors: bytes that are not such a message, or with links of ranks that are not there.
Result<Examination> decodeExamination(std::string_view bytes);

}  // namespace falcon::validate
