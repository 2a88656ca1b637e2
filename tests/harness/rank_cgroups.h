// A cpu cgroup for every forked rank, as containers would have them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace falcon::test {

/// Made by the test's own process, removed by it once the ranks have ended; what a killed test left is removed by the
/// next one.
class RankCgroups {
 public:
  /// Whether the tests were asked to put ranks into cgroups: FALCON_TEST_CGROUPS is set.
  static bool wanted();
  /// Whether this machine lets us; where not, why.
  static bool permitted(std::string& why);

  explicit RankCgroups(int ranks);
  /// All ranks have ended.
  ~RankCgroups();
  RankCgroups(const RankCgroups&) = delete;

  /// Moves the calling process there.
  bool enter(int rank) const;

 private:
  std::vector<std::string> paths_;
};

}  // namespace falcon::test
