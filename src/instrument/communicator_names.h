// What communicators are called, in every event and by every tool: by their part in the job and who is in them.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "instrument/call_log_view.h"
#include "instrument/communicator_roles.h"

namespace falcon::instrument {

/// What the application calls them (ncclConfig_t.commName); those without a name need not be there.
using GivenNames = std::map<CommunicatorId, std::string>;

/// Names are those of one moment: roles are told by what has been called so far.
class CommunicatorNames {
 public:
  CommunicatorNames() = default;
  explicit CommunicatorNames(std::span<const CommunicatorShape> shapes, const GivenNames& given = {});

  /// "data parallel 0"; with a name of its own, 'data parallel 0 "dp"'. Where no role is known, "ranks 1, 3, 5, 7";
  /// where nobody is known to be in it, "communicator 000000000000001a". Groups of one role are numbered by their
  /// lowest ranks; a second communicator of the same ranks and role ends with "#2".
  std::string nameOf(CommunicatorId id) const;
  /// "data parallel 0: ranks 1, 3, 5, 7"
  std::string titleOf(CommunicatorId id) const;
  /// "ranks 1, 3, 5, 7 (data parallel 0)", to stand after "among".
  std::string membersOf(CommunicatorId id) const;

 private:
  struct Known {
    std::string part;   // "data parallel 0"; "" where no role is known
    std::string ranks;  // "" where nobody is known
    std::string given;
  };
  Known find(CommunicatorId id) const;

  std::map<CommunicatorId, Known> known_;
};

/// "rank 3", "ranks 1, 3, 5, 7", "ranks 0 to 63", "64 ranks, one in 8 from 0 to 504"; of long lists without such an
/// order the first ones. Sorted.
std::string ranksText(std::vector<Rank> ranks);

/// The communicators of a job as the logs of its ranks have them: all calls so far, the mean over those ranks.
std::vector<CommunicatorShape> shapesIn(std::span<const CallLogView* const> logs);
GivenNames givenNamesIn(std::span<const CallLogView* const> logs);
inline CommunicatorNames namesIn(std::span<const CallLogView* const> logs) {
  return CommunicatorNames(shapesIn(logs), givenNamesIn(logs));
}

}  // namespace falcon::instrument
