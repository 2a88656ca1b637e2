#include "bootstrap/arrivals.h"

#include <map>
#include <mutex>

#include "base/per_process.h"

namespace falcon::bootstrap {
namespace {

struct Known {
  std::mutex mutex;
  std::map<std::uint64_t, std::vector<Rank>> ranks;
};
constinit PerProcess<Known> known;

}  // namespace

void Arrivals::note(std::uint64_t key, Rank rank) {
  Known& here = known.get();
  const std::lock_guard lock(here.mutex);
  here.ranks[key].push_back(rank);
}

void Arrivals::forget(std::uint64_t key) {
  Known* const here = known.existing();  // destructors come here: nothing may be made for it
  if (!here) return;
  const std::lock_guard lock(here->mutex);
  here->ranks.erase(key);
}

std::vector<Rank> Arrivals::at(std::uint64_t key) {
  Known& here = known.get();
  const std::lock_guard lock(here.mutex);
  const auto found = here.ranks.find(key);
  return found == here.ranks.end() ? std::vector<Rank>() : found->second;
}

}  // namespace falcon::bootstrap
