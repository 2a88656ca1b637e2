// What was measured of one place, as a number that says how much slower it is: what every account of a fail-slow is
// made of. Nothing in it was concluded.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/types.h"

namespace falcon::diagnose {

enum class Quantity : std::uint8_t {
  ownTime,       ///< of a rank: seconds outside of the library an iteration
  computeTest,   ///< of a rank: seconds for the same matrix products, while the job is held
  heldBack,      ///< of a rank: what the kernel says it lost to a quota, to others or to the hypervisor
  gpuTest,       ///< of a rank: its GPU's tests
  transferTime,  ///< of a link: seconds that the job's own bytes were under way
  linkTest,      ///< of a link: seconds a byte, while the job is held
  blockedTime,   ///< of a link: seconds a byte that the job's own bytes were under way, before any test
  groupTime,     ///< of a communicator: seconds an iteration that who waits least spends in it
};
/// "own time", "compute test" ...
const char* nameOf(Quantity quantity);

/// Where it comes from. What two of them agree on is hardly chance.
enum class Source : std::uint8_t {
  passive,  ///< of the running job
  test,     ///< while the job is held
  kernel    ///< counted by the kernel, or by a device's management
};
Source sourceOf(Quantity quantity);
bool isOfLinks(Quantity quantity);

inline constexpr double infinitelySlow = std::numeric_limits<double>::infinity();

struct Observation {
  Quantity quantity = Quantity::ownTime;
  Rank rank = -1;                   ///< of the job; of a rank's quantity
  Link link;                        ///< job ranks; of a link's quantity
  CommunicatorId communicator = 0;  ///< of `blockedTime` and `groupTime`
  std::vector<Rank> ranks{};        ///< its members
  /// Natural logarithm of how many times slower than its peers, and than its own baseline where that is known, it is: 0
  /// is as healthy as they are. Infinite: slower, and how much cannot be told.
  double value = 0;
  /// What every single measurement agrees on: the least of them. By one source alone nobody is named for more.
  double least = infinitelySlow;
  /// Standard deviation of `value` among healthy ones.
  double sigma = 1;
  /// Of a link's: its bytes leave the host.
  bool overNetwork = false;
  /// It was seen often enough to name somebody. Other observations still explain and excuse.
  bool settled = true;
  /// From this slowdown on (a logarithm) it may name somebody though no other source agrees; infinite: never.
  double aloneFrom = infinitelySlow;
};

}  // namespace falcon::diagnose
