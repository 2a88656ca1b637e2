#include "instrument/range_name.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

namespace falcon::instrument {
namespace {

std::string folded(const char* text) {
  return std::string(FoldedName(text).text());
}

TEST(FoldedName, HasNoNumbersAndNoControlCharacters) {
  EXPECT_EQ(folded("forward"), "forward");
  EXPECT_EQ(folded("iteration 17"), folded("iteration 4711"));
  EXPECT_EQ(folded("layer 3, micro-batch 12"), "layer #, micro-batch #");
  EXPECT_EQ(folded("a\nb\x7f\x01"), "a b  ");
  EXPECT_EQ(folded("123"), "#");
}

TEST(FoldedName, IsCutBetweenCharacters) {
  const std::string most(RangeLogHeader::nameBytes - 1, 'x');
  EXPECT_EQ(folded((most + "yz").c_str()), most);
  EXPECT_EQ(folded(most.c_str()), most);
  const std::string before = most.substr(1);  // one byte is left, the character needs two
  EXPECT_EQ(folded((before + "\u00e9").c_str()), before);
  EXPECT_EQ(folded((most.substr(2) + "\u00e9").c_str()), most.substr(2) + "\u00e9");
  EXPECT_EQ(folded((most.substr(3) + "\U0001F600").c_str()), most.substr(3));
  const std::string broken(100, '\x80');  // no text at all
  EXPECT_LE(folded(broken.c_str()).size(), most.size());
}

TEST(FoldedName, OfWideTextIsThatOfTheSameTextInUtf8) {
  for (const auto& [wide, narrow] : std::vector<std::pair<const wchar_t*, const char*>>{
           {L"data loading 7", "data loading #"},
           {L"caf\u00e9 \u20ac \U0001F600", "caf\u00e9 \u20ac \U0001F600"},
           {L"", "unnamed"},
           {nullptr, "unnamed"}}) {
    EXPECT_EQ(FoldedName(wide).text(), narrow);
    EXPECT_EQ(FoldedName(wide).hash(), FoldedName(narrow).hash());
  }
  EXPECT_EQ(folded(nullptr), "unnamed");
  const wchar_t impossible[] = {static_cast<wchar_t>(0x7fffffff), 0};
  EXPECT_EQ(FoldedName(impossible).text(), "?");
}

TEST(RangeName, IsOneForATextWhoeverAsks) {
  std::set<RangeName*> names;
  std::vector<RangeName*> got(4);
  std::vector<std::thread> threads;
  for (auto& name : got)
    threads.emplace_back([&name] {
      while (!(name = RangeName::of(FoldedName("asked by many")))) {
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(std::set<RangeName*>(got.begin(), got.end()).size(), 1u);
  EXPECT_EQ(got[0]->text(), "asked by many");
  EXPECT_EQ(RangeName::at(got[0]), got[0]);
  EXPECT_EQ(RangeName::at(reinterpret_cast<const char*>(got[0]) + 1), nullptr);
  EXPECT_EQ(RangeName::at(&names), nullptr);
}

TEST(RangeName, LeavesAPartOfTheLogToFalconsOwn) {
  auto log = RangeLog::create("", 0);
  ASSERT_TRUE(log);
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 200; ++i) {
    std::string text = "name ";
    for (int left = i; left > 0; left /= 26) text += static_cast<char>('a' + left % 26);
    RangeName* const name = RangeName::of(FoldedName(text.c_str()));
    ASSERT_TRUE(name);
    numbers.insert(name->numberIn(**log, 1));
    EXPECT_EQ(name->numberIn(**log, 1), name->numberIn(**log, 1));
  }
  EXPECT_EQ(numbers.size(), RangeName::mostInLog + 1u) << "and one for all others";
  EXPECT_EQ((*log)->text(*numbers.rbegin()), "other");
  const auto own = (*log)->nameOf("asked for by name");
  EXPECT_EQ((*log)->text(own), "asked for by name");
  auto next = RangeLog::create("", 0);
  EXPECT_EQ(RangeName::of(FoldedName("name c"))->numberIn(**next, 2), 0u) << "another log has other numbers";
}

TEST(RangeDensity, MutesWhatComesTooOften) {
  RangeDensity density;
  RangeDensity::Count often, seldom;
  std::uint32_t admitted = 0;
  for (int i = 0; i < 3000; ++i)
    if (density.admit(often, 1s + i * 100us)) ++admitted;
  EXPECT_EQ(admitted, RangeDensity::mostOfName);
  EXPECT_TRUE(density.admit(seldom, 1500ms));
  EXPECT_TRUE(density.admit(often, 2s)) << "a new second; who is muted is for the caller to remember";
}

TEST(RangeDensity, MutesTheMostFrequentWhereThereAreTooManyInAll) {
  RangeDensity density;
  std::vector<RangeDensity::Count> names(20);
  RangeDensity::Count seldom;
  std::vector<std::uint32_t> admitted(names.size());
  for (int i = 0; i < 900; ++i) {
    for (std::size_t name = 0; name < names.size(); ++name)
      if (density.admit(names[name], 1s + i * 1ms)) ++admitted[name];
    if (i % 10 == 0) {
      EXPECT_TRUE(density.admit(seldom, 1s + i * 1ms));
    }
  }
  for (const std::uint32_t each : admitted) EXPECT_LT(each, RangeDensity::mostOfName / 2);
}

}  // namespace
}  // namespace falcon::instrument
