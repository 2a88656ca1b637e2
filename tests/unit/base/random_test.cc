#include "base/random.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>

#include "harness/forbid_call.h"

namespace falcon {
namespace {

TEST(Random, FillsEveryByteAndNeverRepeats) {
  // More than the kernel gives at once where a signal comes.
  std::array<std::byte, 1000> seen{};
  for (int i = 0; i < 16; ++i) {
    std::array<std::byte, 1000> bytes{};
    ASSERT_TRUE(fillRandom(bytes));
    for (std::size_t at = 0; at < bytes.size(); ++at) seen[at] |= bytes[at];
  }
  // Sixteen zeros in a row have a probability of 2^-128.
  EXPECT_THAT(seen, testing::Each(testing::Ne(std::byte{0})));
  std::set<std::uint64_t> values;
  for (int i = 0; i < 100; ++i) values.insert(*randomValue<std::uint64_t>());
  EXPECT_EQ(values.size(), 100u);
}

TEST(Random, NothingIsFilledInTheirPlaceWhereTheKernelGivesNone) {
  const pid_t child = fork();
  if (child == 0) {
    if (!test::forbidRandomBytes(ENOSYS)) _exit(2);
    std::array<std::byte, 16> bytes{};
    const Status filled = fillRandom(bytes);
    const bool refused = !filled && filled.error().code() == ErrorCode::system &&
                         filled.error().message() == "the kernel gives no random bytes: Function not implemented";
    _exit(refused && !randomValue<std::uint64_t>() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 2) GTEST_SKIP() << "no seccomp filter";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace falcon
