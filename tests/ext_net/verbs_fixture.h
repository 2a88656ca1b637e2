// Two RoCE devices that there are not, and a network over them.
#pragma once

#include <filesystem>
#include <memory>

#include "ext_net/ends.h"
#include "ext_net/fake_verbs.h"
#include "verbs/verbs_network.h"

namespace falcon::net::test {

class OverFakeVerbs : public testing::Test {
 protected:
  explicit OverFakeVerbs(std::vector<FakeDevice> devices = {roceDevice("mlx5_0", 1), roceDevice("mlx5_1", 2)})
      : fake_(std::move(devices)) {}
  /// All that was made is destroyed.
  void TearDown() override {
    ends_.reset();
    over_.reset();
    EXPECT_EQ(fake_.alive(), 0);
  }

  VerbsNetwork& over() {
    if (!over_) {
      over_ = std::make_unique<VerbsNetwork>(fake_, FALCON_VERBS_TREE, clock_);
      const auto devices = over_->devices();
      EXPECT_TRUE(devices) << devices.error().message();
    }
    return *over_;
  }
  /// A sender from device 1 to a receiver at device 0.
  Ends& ends() {
    if (!ends_) ends_ = std::make_unique<Ends>(over(), 0, 1);
    return *ends_;
  }

  const Setting interface_{"NCCL_SOCKET_IFNAME", "lo"};
  ManualClock clock_;
  FakeVerbs fake_;
  std::unique_ptr<VerbsNetwork> over_;
  std::unique_ptr<Ends> ends_;
};

}  // namespace falcon::net::test
