#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/format.h"
#include "fake_job.h"

namespace falcon::control::test {

using enum EventKind;
using Kinds = std::vector<EventKind>;

inline const std::vector<int> equalSplit{8, 8, 8, 8};
inline const std::vector<Rank> firstRing{0, 1, 2, 3};

inline Culprit slowRank(Rank rank) {
  return {CulpritKind::rank, rank, {}, false};
}
inline Culprit slowLink(Rank from, Rank to) {
  return {CulpritKind::link, -1, {from, to}, false};
}

inline ControllerSettings automatic() {
  ControllerSettings settings;
  settings.mitigate = MitigateMode::automatic;
  return settings;
}

template <class Order>
bool is(const Message& message) {
  return std::holds_alternative<Order>(message);
}

class ControllerTest : public testing::Test {
 protected:
  /// A job past its baseline, healthy.
  FakeJob& start(ControllerSettings settings = automatic(), topology::Layout layout = {4, 2, 1}, int ranksOfNode = 0) {
    job_ = std::make_unique<FakeJob>(settings, layout, ranksOfNode);
    EXPECT_TRUE(job_->runUntil(baselineTaken, 30)) << job_->text();
    job_->run(5);
    return *job_;
  }

 private:
  std::unique_ptr<FakeJob> job_;
};

}  // namespace falcon::control::test
