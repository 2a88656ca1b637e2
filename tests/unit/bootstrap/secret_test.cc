// Who may join a job whose rendezvous is at a known address.
#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "ranks.h"

namespace falcon::bootstrap {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* rightSecret = "correct horse battery staple";
constexpr const char* wrongSecret = "incorrect donkey";

/// An address that is free now, where rank 0 will open the rendezvous.
std::string freeAddress() {
  return reactor()->address().text();
}

/// What a forked rank logs and how its join ended, in files that go with this object.
class Trial {
 public:
  Trial() {
    std::string pattern = (std::filesystem::temp_directory_path() / "falcon-secret-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Trial() { std::filesystem::remove_all(folder_); }
  Trial(const Trial&) = delete;

  /// A rank with this secret (null: none); its exit code is 0 if it joined.
  Process rank(Rank rank, int size, const char* secret, Nanoseconds limit = 60s) const {
    return Process([this, rank, size, secret, limit] {
      setenv("NCCL_COMM_ID", address_.c_str(), 1);
      setenv("NCCL_DEBUG", "TRACE", 1);
      setenv("NCCL_DEBUG_FILE", file("log", rank).c_str(), 1);
      if (secret) setenv("NCCL_FALCON_SECRET", secret, 1);
      falcon::log::reset();
      const auto id = makeUniqueId();
      if (!id) return 2;
      const auto network = join(*transport::processReactor(), *id, rank, size, limit);
      if (!network) {
        std::ofstream(file("error", rank)) << network.error().message();
        return network.error().code() == ErrorCode::invalidUsage ? 3 : 4;
      }
      return (*network)->barrier(60s) ? 0 : 5;
    });
  }
  std::string log(Rank rank) const { return contents(file("log", rank)); }
  std::string error(Rank rank) const { return contents(file("error", rank)); }

 private:
  std::string file(const char* kind, Rank rank) const { return folder_ + "/" + kind + std::to_string(rank); }
  static std::string contents(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const std::string address_ = freeAddress();
  std::string folder_;
};

constexpr const char* warning = "NCCL_FALCON_SECRET is not set";

TEST(Secret, RanksThatShareItJoinAndNobodyLogsIt) {
  const Trial trial;
  std::vector<Process> ranks;
  for (const Rank rank : {0, 1, 2}) ranks.push_back(trial.rank(rank, 3, rightSecret));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  for (const Rank rank : {0, 1, 2})
    EXPECT_THAT(trial.log(rank), AllOf(Not(HasSubstr(rightSecret)), Not(HasSubstr(warning))));
}

TEST(Secret, WithoutOneRankZeroSaysSoOnce) {
  const Trial trial;
  std::vector<Process> ranks;
  for (const Rank rank : {0, 1}) ranks.push_back(trial.rank(rank, 2, nullptr));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  const std::string log = trial.log(0);
  const auto first = log.find(warning);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(log.find(warning, first + 1), std::string::npos);
  EXPECT_THAT(trial.log(1), Not(HasSubstr(warning)));
}

struct Mismatch {
  const char* rankZeros;
  const char* joiners;
};
class WrongSecret : public testing::TestWithParam<Mismatch> {};

TEST_P(WrongSecret, IsToldToTheJoinerAtOnceAndDoesNotDisturbTheOthers) {
  const Trial trial;
  std::vector<Process> ranks;
  for (const Rank rank : {0, 1}) ranks.push_back(trial.rank(rank, 3, GetParam().rankZeros));
  // It would wait for an hour if it were not turned away.
  Process stranger = trial.rank(2, 3, GetParam().joiners, 1h);
  EXPECT_EQ(stranger.wait(), 3);
  EXPECT_THAT(trial.error(2), AllOf(HasSubstr("different secrets"), HasSubstr("NCCL_FALCON_SECRET")));
  if (const char* its = GetParam().joiners) {
    EXPECT_THAT(trial.log(2) + trial.error(2), Not(HasSubstr(its)));
  }
  // Its place is still free for who knows the secret.
  ranks.push_back(trial.rank(2, 3, GetParam().rankZeros));
  for (Process& rank : ranks) EXPECT_EQ(rank.wait(), 0);
  EXPECT_THAT(trial.log(0), HasSubstr("does not know the secret"));
}
INSTANTIATE_TEST_SUITE_P(Of, WrongSecret,
                         testing::Values(Mismatch{rightSecret, wrongSecret}, Mismatch{rightSecret, nullptr},
                                         Mismatch{nullptr, wrongSecret}),
                         [](const auto& mismatch) -> std::string {
                           return mismatch.index == 0   ? "Another"
                                  : mismatch.index == 1 ? "NoneAtTheJoiner"
                                                        : "NoneAtRankZero";
                         });

TEST(Secret, EveryBitOfItCounts) {
  const auto address = *SocketAddress::parse("10.0.0.1:4000");
  const auto secretOf = [&](std::string_view text) { return idOfFixedAddress(address, text).secret; };
  EXPECT_EQ(secretOf("a"), secretOf("a"));
  EXPECT_NE(secretOf("a"), secretOf("b"));
  EXPECT_NE(secretOf(""), secretOf("a"));
  EXPECT_NE(secretOf("a"), idOfFixedAddress(*SocketAddress::parse("10.0.0.1:4001"), "a").secret);
  EXPECT_TRUE(hasFixedAddress(idOfFixedAddress(address, "a")));
}

}  // namespace
}  // namespace falcon::bootstrap
