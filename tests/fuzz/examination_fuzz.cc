// What `falcon doctor --attach` reads of all tests of a job.
#include "fuzz_target.h"
#include "validate/examination.h"

namespace falcon::fuzz {
namespace {

using namespace validate;

std::string encodeAgain(const Examination& examination) {
  return encode(examination);
}

}  // namespace

std::vector<std::string> seeds() {
  Examination two{.heldSeconds = 1.5, .ranks = {}, .links = {}};
  two.ranks.push_back({.rank = 0, .site = {"node", "10.0.0.1", "host"}, .gigaflops = 3, .memoryRate = 1e9});
  two.ranks.push_back({.rank = 7, .site = {"", "", ""}});
  two.ranks[1].evidence.throttled = 0.25;
  const Examination unlinked = two;
  two.links = {{.communicator = 5, .link = {0, 7}, .status = LinkStatus::measured, .bytes = 1 << 20, .seconds = 0.5},
               {.communicator = 5, .link = {7, 0}}};
  return {encode(two), encode(unlinked), encode(Examination{})};
}

void run(std::string_view input) {
  requireRoundTrip(input, decodeExamination, encodeAgain);
  const auto examination = decodeExamination(input);
  if (!examination) return;
  Rank last = -1;
  for (const ExaminedRank& each : examination->ranks) {
    require(each.rank > last, "ranks rise");
    last = each.rank;
  }
}

}  // namespace falcon::fuzz
