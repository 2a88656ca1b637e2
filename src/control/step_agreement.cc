#include "control/step_agreement.h"

#include <algorithm>

#include "base/rank_list.h"
#include "base/wire.h"

namespace falcon::control {

Status agreeOnStep(std::uint64_t number, const Gather& gather) {
  while (true) {
    const auto all = gather(WireWriter().put(number).bytes());
    if (!all) return all.error();
    bool behind = false;
    std::vector<Rank> past;
    for (std::size_t rank = 0; rank < all->size(); ++rank) {
      WireReader reader((*all)[rank]);
      const auto theirs = reader.get<std::uint64_t>();
      if (!reader.finished()) return Error::remote("rank {} does something else than this rank", rank);
      if (theirs > number) past.push_back(static_cast<Rank>(rank));
      behind |= theirs < number;
    }
    if (!past.empty())
      return Error::system("there was no thread or no memory for it on {} {}", past.size() == 1 ? "rank" : "ranks",
                           listOf(past));
    if (!behind) return {};
  }
}

}  // namespace falcon::control
