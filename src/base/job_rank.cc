#include "base/job_rank.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace falcon {

Rank jobRankFromEnvironment() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* value = std::getenv(name);
    if (!value) continue;
    const std::string_view text(value);
    Rank rank = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
    if (error == std::errc() && end == text.data() + text.size() && rank >= 0) return rank;
  }
  return -1;
}

}  // namespace falcon
