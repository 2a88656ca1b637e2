#include "instrument/range_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/format.h"

namespace falcon::instrument {
namespace {

class RangeLogTest : public testing::Test {
 protected:
  void TearDown() override { unlink(path_.c_str()); }
  const std::string path_ = fmt::format("/dev/shm/falcon-range-log-{}", getpid());
};

TEST_F(RangeLogTest, KeepsNamesAndRangesForOutsiders) {
  auto log = RangeLog::create(path_, 3);
  ASSERT_TRUE(log);
  const auto forward = (*log)->nameOf("forward"), backward = (*log)->nameOf("backward");
  EXPECT_NE(forward, backward);
  EXPECT_EQ((*log)->nameOf("forward"), forward);
  (*log)->write({forward, 0, 1ms, 2ms});
  (*log)->write({backward, 1, 3ms, 5ms});
  (*log)->showLast(backward, 2ms, 1);
  const auto view = readRangeLog(path_, 10);
  ASSERT_TRUE(view) << view.error().message();
  EXPECT_EQ(view->jobRank, 3);
  EXPECT_EQ(view->pid, getpid());
  ASSERT_EQ(view->names.size(), 2u);
  EXPECT_EQ(view->names[backward].text, "backward");
  EXPECT_EQ(view->names[backward].inLastIteration.count(), Nanoseconds(2ms).count());
  ASSERT_EQ(view->latest.size(), 2u);
  EXPECT_EQ(view->latest[1].name, backward);
  EXPECT_EQ(view->latest[1].depth, 1u);
  EXPECT_EQ(view->latest[1].end.count(), Nanoseconds(5ms).count());
}

TEST_F(RangeLogTest, ShowsOutsidersWhatIsOpen) {
  auto log = RangeLog::create(path_, 3);
  ASSERT_TRUE(log);
  const auto step = (*log)->nameOf("step"), load = (*log)->nameOf("load");
  const auto open = [&] {
    std::vector<std::string> texts;
    const auto view = readRangeLog(path_, 0);
    for (const OpenRange& range : view->open)
      texts.push_back(fmt::format("{} {}/{} {}", range.thread, range.name, range.depth, range.begin.count()));
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(open(), Texts{});
  const int inner = (*log)->showOpen({load, 1, Nanoseconds(7), {}}, 50);
  const int outer = (*log)->showOpen({step, 0, Nanoseconds(5), {}}, 50);
  (*log)->showOpen({step, 0, Nanoseconds(6), {}}, 49);
  EXPECT_EQ(open(), (Texts{"49 step/0 6", "50 step/0 5", "50 load/1 7"}));
  (*log)->hideOpen(inner);
  EXPECT_EQ(open(), (Texts{"49 step/0 6", "50 step/0 5"}));
  (*log)->hideOpen(outer);
  std::vector<int> places;
  for (std::uint32_t i = 0; i < RangeLogHeader::mostOpen; ++i)
    places.push_back((*log)->showOpen({step, i, Nanoseconds(i), {}}, 1));
  EXPECT_EQ(places.back(), RangeLog::noPlace);
  EXPECT_EQ(open().size(), RangeLogHeader::mostOpen);
  for (const int place : places) (*log)->hideOpen(place);
  EXPECT_EQ(open(), Texts{"49 step/0 6"});
}

TEST_F(RangeLogTest, SharesTheLastNameAmongTooMany) {
  auto log = RangeLog::create("", 0);
  ASSERT_TRUE(log);
  std::uint32_t last = 0;
  for (int i = 0; i < 200; ++i) last = (*log)->nameOf("name " + std::to_string(i));
  EXPECT_EQ(last, RangeLogHeader::mostNames - 1);
  EXPECT_EQ((*log)->text(last), "other");
  EXPECT_EQ((*log)->text(0), "name 0");
  const std::string longName(100, 'x');
  auto fresh = RangeLog::create("", 0);
  EXPECT_EQ((*fresh)->text((*fresh)->nameOf(longName)), longName.substr(0, RangeLogHeader::nameBytes - 1));
  EXPECT_EQ((*fresh)->nameOf(longName), 0u);
}

TEST_F(RangeLogTest, IsWrittenByManyThreadsAndReadMeanwhile) {
  auto log = RangeLog::create("", 0);
  ASSERT_TRUE(log);
  constexpr int each = 20'000, count = 3;
  std::vector<std::thread> writers;
  for (int t = 0; t < count; ++t)
    writers.emplace_back([&, t] {
      const auto name = (*log)->nameOf("thread " + std::to_string(t));
      for (int i = 1; i <= each; ++i) (*log)->write({name, 7, Nanoseconds(i), Nanoseconds(2 * i)});
    });
  std::uint64_t next = 0;
  std::vector<RangeRecord> read;
  const auto check = [&] {
    read.clear();
    (*log)->readFrom(next, read);
    for (const RangeRecord& record : read) {
      ASSERT_EQ(record.end.count(), 2 * record.begin.count());  // no record is half of another
      ASSERT_EQ(record.depth, 7u);
      ASSERT_LT(record.name, 3u);
    }
  };
  for (int i = 0; i < 100; ++i) check();
  for (auto& writer : writers) writer.join();
  check();
  EXPECT_EQ(next, std::uint64_t{each} * count);
  (*log)->write({0, 7, Nanoseconds(5), Nanoseconds(10)});
  check();
  ASSERT_EQ(read.size(), 1u) << "nothing before it is waited for";
  EXPECT_EQ(read.front().begin, Nanoseconds(5));
}

TEST_F(RangeLogTest, RefusesWhatIsDamaged) {
  auto log = RangeLog::create(path_, 0);
  ASSERT_TRUE(log);
  const auto damage = [&](std::size_t offset, std::uint32_t value) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  damage(offsetof(RangeLogHeader, capacity), 1u << 30);
  EXPECT_FALSE(readRangeLog(path_, 1));
  damage(offsetof(RangeLogHeader, capacity), 4096);
  EXPECT_TRUE(readRangeLog(path_, 1));
  damage(offsetof(RangeLogHeader, version), 9);
  EXPECT_FALSE(readRangeLog(path_, 1));
  ASSERT_EQ(truncate(path_.c_str(), 100), 0);
  EXPECT_FALSE(readRangeLog(path_, 1));
  EXPECT_FALSE(readRangeLog("/dev/null", 1));
}

}  // namespace
}  // namespace falcon::instrument
