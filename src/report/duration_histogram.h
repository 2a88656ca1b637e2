// Durations of collectives, counted as Prometheus wants a histogram.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/call.h"

namespace falcon::report {

struct DurationHistogram {
  static constexpr std::array bounds{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0};  ///< s

  std::array<std::uint64_t, bounds.size()> within{};  ///< at most bounds[i], as le="bounds[i]" means it
  std::uint64_t count = 0;
  double sum = 0;  ///< seconds

  void add(double seconds);
};

/// By communicator and operation. Sends and receives do not count. Of more than `mostCommunicators` the later ones go
/// by the name "other", so that a job which makes them again and again does not make series without end.
class CollectiveDurations {
 public:
  static constexpr std::size_t mostCommunicators = 64;
  using ByName = std::map<std::pair<std::string, std::string>, DurationHistogram>;  ///< communicator, operation

  /// How the communicator is called from now on; "" leaves it its id. Two of one name are counted together,
  /// and so are those whose labels would be one, since bytes that are no UTF-8 look alike there.
  void name(CommunicatorId communicator, const std::string& name);
  void add(const CallRecord& record);
  const ByName& byName() const { return byName_; }

 private:
  std::map<CommunicatorId, std::string> names_;
  ByName byName_;
};

}  // namespace falcon::report
