#include "control/ranges.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace falcon::control {
namespace {

instrument::RangeName* named(const char* text) {
  return instrument::RangeName::of(instrument::FoldedName(text));
}

class RangesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto log = instrument::RangeLog::create("", 0);
    ASSERT_TRUE(log);
    log_ = std::move(*log);
    Ranges::useLog(log_.get());
  }
  void TearDown() override { ASSERT_TRUE(Ranges::useLog(nullptr)); }

  /// What was written since the last time: "name/depth".
  std::vector<std::string> written() {
    std::vector<instrument::RangeRecord> records;
    log_->readFrom(next_, records);
    std::vector<std::string> texts;
    for (const auto& record : records) {
      EXPECT_LE(record.begin, record.end);
      texts.push_back(log_->text(record.name) + "/" + std::to_string(record.depth));
    }
    return texts;
  }
  using Texts = std::vector<std::string>;

  std::unique_ptr<instrument::RangeLog> log_;
  std::uint64_t next_ = 0;
  const int oneDomain_ = 0, otherDomain_ = 0;
};

TEST_F(RangesTest, OfDifferentDomainsNeedNotNest) {
  Ranges::push(&oneDomain_, named("one"));
  Ranges::push(&otherDomain_, named("other's"));
  Ranges::begin("ours");
  Ranges::pop(&oneDomain_);
  EXPECT_EQ(written(), Texts{"one/0"});
  EXPECT_TRUE(Ranges::end());
  Ranges::pop(&oneDomain_);  // none is open
  EXPECT_FALSE(Ranges::end()) << "the other domain's is not ours";
  Ranges::pop(&otherDomain_);
  EXPECT_EQ(written(), (Texts{"ours/1", "other's/0"}));
}

TEST_F(RangesTest, ThatNobodyNamedOnlyTakeTheirLevel) {
  for (int i = 0; i < Ranges::levels; ++i) {
    EXPECT_TRUE(Ranges::isShallow());
    Ranges::push(nullptr, named("outer"));
  }
  EXPECT_FALSE(Ranges::isShallow());
  for (int i = 0; i < 100; ++i) Ranges::push(nullptr, nullptr);
  for (int i = 0; i < 100; ++i) Ranges::pop(nullptr);
  EXPECT_EQ(written(), Texts{});
  for (int i = 0; i < Ranges::levels; ++i) Ranges::pop(nullptr);
  EXPECT_EQ(written(), (Texts{"outer/3", "outer/2", "outer/1", "outer/0"}));
}

TEST_F(RangesTest, MayEndOnAnotherThread) {
  const std::uint64_t first = Ranges::start(named("first")), second = Ranges::start(named("second"));
  EXPECT_NE(first, 0u);
  EXPECT_NE(first, second);
  std::thread([&] { Ranges::stop(first); }).join();
  Ranges::stop(first);  // again
  Ranges::stop(0);
  Ranges::stop(12345678);
  Ranges::stop(second);
  EXPECT_EQ(written(), (Texts{"first/0", "second/0"}));
}

TEST_F(RangesTest, ThatNeverEndTakeNoMoreThanTheirPlacesUntilTheNextJob) {
  std::uint32_t kept = 0;
  for (int i = 0; i < 400; ++i)
    if (Ranges::start(named("never ends")) != 0) ++kept;
  EXPECT_EQ(kept, Ranges::mostStarted);
  const std::uint64_t before = Ranges::start(named("too many"));
  EXPECT_EQ(before, 0u);
  auto next = instrument::RangeLog::create("", 0);
  Ranges::useLog(next->get());
  const std::uint64_t range = Ranges::start(named("of the next job"));
  EXPECT_NE(range, 0u);
  Ranges::stop(range);
  log_ = std::move(*next);
  EXPECT_EQ(written(), Texts{"of the next job/0"});
}

TEST_F(RangesTest, OfANameThatComesTooOftenAreLeftOutAndTheOthersStay) {
  Ranges::push(nullptr, named("rare"));
  constexpr int rounds = 100'000;  // some of it within a second, on any machine
  std::uint64_t kept = 0;
  for (int i = 0; i < rounds; ++i) {
    Ranges::push(nullptr, named("dense"));
    Ranges::pop(nullptr);
    if (i % 1000 == 0) kept += written().size();
  }
  kept += written().size();
  EXPECT_GE(kept, instrument::RangeDensity::mostOfName);
  EXPECT_LT(kept, std::uint64_t{rounds} / 2);
  Ranges::pop(nullptr);
  EXPECT_EQ(written(), Texts{"rare/0"});
}

TEST_F(RangesTest, OfManyThreadsAreAllWritten) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) {
        Ranges::push(&oneDomain_, named("pushed"));
        const std::uint64_t range = Ranges::start(named("started"));
        Ranges::pop(&oneDomain_);
        Ranges::stop(range);
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(written().size(), 800u);
}

TEST(RangesWithoutAJob, AreNothing) {
  EXPECT_FALSE(Ranges::areRecorded());
  Ranges::push(nullptr, named("nobody"));
  Ranges::pop(nullptr);
  EXPECT_EQ(Ranges::start(named("nobody")), 0u);
  Ranges::stop(1);
}

}  // namespace
}  // namespace falcon::control
