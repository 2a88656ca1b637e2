#include "instrument/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace falcon::instrument {
namespace {

using testing::HasSubstr;

constexpr int ranks = 3;

std::string recordingOfRanks() {
  std::vector<RankSnapshot> snapshots;
  for (int rank = 0; rank < ranks; ++rank) {
    CallLogView view;
    view.identity = {"job", "host", rank, ranks};
    CallRecord call;
    call.enter = Nanoseconds(10);
    view.latest = {call};
    view.calls = 1;
    snapshots.push_back({view, ProcessState::dead, Nanoseconds(20)});
  }
  return encodeRecording(snapshots);
}

Result<Recording> decode(const std::string& bytes) {
  std::vector<std::uint64_t> aligned(bytes.size() / 8 + 1);
  std::memcpy(aligned.data(), bytes.data(), bytes.size());
  return decodeRecording({reinterpret_cast<const std::byte*>(aligned.data()), bytes.size()}, "r.rec");
}

TEST(Recording, ThatIsWholeLosesNothing) {
  const auto read = decode(recordingOfRanks());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->ranks.size(), std::size_t{ranks});
  EXPECT_EQ(read->lost, "");
}

TEST(Recording, ThatIsCutAnywhereGivesItsWholeRanksAndSaysWhatIsLost) {
  const std::string whole = recordingOfRanks();
  const std::size_t header = 16, rankBytes = (whole.size() - header) / ranks;
  for (std::size_t size = header; size < whole.size(); size += 8) {
    const std::size_t kept = (size - header) / rankBytes, lost = size - header - kept * rankBytes;
    const auto read = decode(whole.substr(0, size));
    ASSERT_EQ(static_cast<bool>(read), kept > 0) << size;
    if (!read) continue;
    ASSERT_EQ(read->ranks.size(), kept);
    for (std::size_t i = 0; i < kept; ++i) EXPECT_EQ(read->ranks[i].log.identity.jobRank, static_cast<int>(i));
    EXPECT_THAT(read->lost, HasSubstr("recording r.rec is cut"));
    EXPECT_THAT(read->lost, HasSubstr(" " + std::to_string(lost) + " of its "));
  }
}

TEST(Recording, WithADamagedRankGivesTheOthers) {
  std::string bytes = recordingOfRanks();
  const std::size_t rankBytes = (bytes.size() - 16) / ranks;
  bytes[16 + rankBytes + 24] ^= 1;  // the magic of the second rank's log
  const auto read = decode(bytes);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->ranks.size(), 2u);
  EXPECT_EQ(read->ranks[1].log.identity.jobRank, 2);
  EXPECT_THAT(read->lost, HasSubstr("2 of its 3 ranks are whole, " + std::to_string(rankBytes)));
}

}  // namespace
}  // namespace falcon::instrument
