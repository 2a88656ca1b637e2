#include "transport/descriptor_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace falcon::transport {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// The limit is the process's: put back at the end.
class DescriptorLimit : public testing::Test {
 protected:
  DescriptorLimit() { getrlimit(RLIMIT_NOFILE, &before_); }
  ~DescriptorLimit() override { setrlimit(RLIMIT_NOFILE, &before_); }

  void setSoft(rlim_t soft) const {
    const rlimit limit{soft, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t soft() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }
  rlim_t hard() const { return before_.rlim_max; }

 private:
  rlimit before_{};
};

TEST_F(DescriptorLimit, StaysWhereThereIsRoom) {
  setSoft(200);
  EXPECT_TRUE(reserveDescriptors(100, "a test"));
  EXPECT_EQ(soft(), 200u);
}

TEST_F(DescriptorLimit, RisesByWhatIsNeeded) {
  if (hard() < 1000) GTEST_SKIP() << "the hard limit leaves no room";
  setSoft(100);
  EXPECT_TRUE(reserveDescriptors(500, "a test"));
  EXPECT_GE(soft(), 500u);
  EXPECT_LT(soft(), 700u);
}

TEST_F(DescriptorLimit, BeyondTheHardLimitTheErrorNamesWhoAndTheRemedy) {
  if (hard() == RLIM_INFINITY) GTEST_SKIP() << "there is no limit";
  const auto reserved = reserveDescriptors(hard() + 1, "rank 0 of 9 ranks");
  ASSERT_FALSE(reserved);
  EXPECT_THAT(reserved.error().message(),
              AllOf(HasSubstr("rank 0 of 9 ranks"), HasSubstr(std::to_string(hard())), HasSubstr("ulimit -n")));
}

}  // namespace
}  // namespace falcon::transport
