// One rank's buffers for a call, with guards around them, in place or not.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "base/call.h"

namespace falcon::test {

bool canBeInPlace(Operation operation);

class RankBuffers {
 public:
  RankBuffers(const Call& call, Rank rank, int ranks, bool inPlace);

  Call call();
  /// The result is right, and no byte outside of it has changed.
  testing::AssertionResult check() const;

 private:
  Call call_;
  Rank rank_;
  int ranks_;
  std::vector<std::byte> input_, scalar_;
  std::vector<std::byte> memory_, before_;
  std::size_t sendAt_ = 0, receiveAt_ = 0;
};

}  // namespace falcon::test
