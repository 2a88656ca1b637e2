// From times to the lines of a tuning file.
#include "tune/best_lines.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace falcon::tune {
namespace {

using collectives::algorithmsFor;
using collectives::Extent;
using collectives::TuningLine;

constexpr std::size_t noEnd = std::numeric_limits<std::size_t>::max();

/// Times that make `fastest` the fastest by far.
void add(std::vector<Sample>& samples, Operation operation, int ranks, std::size_t bytes, const std::string& fastest) {
  for (const std::string& name : algorithmsFor(operation, Extent::node))
    samples.push_back({operation, Extent::node, ranks, bytes, name, name == fastest ? 1.0 : 10.0});
}

TEST(BestLines, MeetHalfwayAndLeaveNoGap) {
  std::vector<Sample> samples;
  for (const std::size_t bytes : {64, 256, 1024}) add(samples, Operation::allReduce, 2, bytes, "flat");
  for (const std::size_t bytes : {4096, 16384}) add(samples, Operation::allReduce, 2, bytes, "ring");
  const auto lines = bestLines(samples);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].algorithm, "flat");
  EXPECT_EQ(lines[0].fromBytes, 0u);
  EXPECT_EQ(lines[0].toBytes, 2048u);
  EXPECT_EQ(lines[1].algorithm, "ring");
  EXPECT_EQ(lines[1].fromBytes, 2048u);
  EXPECT_EQ(lines[1].toBytes, noEnd);
}

TEST(BestLines, TheBuiltInChoiceStaysUnlessItIsBeatenClearly) {
  for (const std::size_t bytes : {std::size_t{64}, std::size_t{64} << 10, std::size_t{64} << 20}) {
    const std::string usual = builtInChoice(Operation::allReduce, Extent::node, bytes, 4);
    for (const double gain : {1.05, 1.3}) {
      std::vector<Sample> samples;
      for (const std::string& name : algorithmsFor(Operation::allReduce, Extent::node))
        samples.push_back({Operation::allReduce, Extent::node, 4, bytes, name, name == usual ? gain : 1.0});
      const auto lines = bestLines(samples);
      ASSERT_EQ(lines.size(), 1u);
      EXPECT_EQ(lines[0].algorithm == usual, gain < 1.1) << usual << " at " << bytes;
    }
  }
}

TEST(BestLines, TheLibraryThenChoosesWhatWasFastest) {
  std::mt19937 random(7);
  const std::vector<int> rankCounts{2, 4, 8};
  const std::vector<std::size_t> sizes{64, 256, 1 << 10, 16 << 10, 64 << 10, 1 << 20, 16 << 20};
  const Operation operations[] = {Operation::allReduce, Operation::reduceScatter, Operation::broadcast,
                                  Operation::allToAll};
  std::vector<Sample> samples;
  std::vector<std::string> chosen;
  for (const Operation operation : operations)
    for (const int ranks : rankCounts)
      for (const std::size_t bytes : sizes) {
        const auto names = algorithmsFor(operation, Extent::node);
        chosen.push_back(names[random() % names.size()]);
        add(samples, operation, ranks, bytes, chosen.back());
      }
  std::shuffle(samples.begin(), samples.end(), random);
  std::string text;
  for (const TuningLine& line : bestLines(samples)) text += format(line) + "\n";
  const auto tuning = collectives::parseTuning(text, Extent::node);
  ASSERT_TRUE(tuning) << tuning.error().message();
  std::size_t next = 0;
  for (const Operation operation : operations)
    for (const int ranks : rankCounts)
      for (const std::size_t bytes : sizes) {
        const auto* direct = collectives::chooseDirect(operation, bytes, ranks, &*tuning);
        const auto* other =
            collectives::findAlgorithm(operation, bytes, ranks, collectives::PreferenceMasks::everything, &*tuning);
        const std::string now = direct ? direct->name : other ? other->name : "messages";
        EXPECT_EQ(now, chosen[next++]) << nameOf(operation) << ' ' << ranks << ' ' << bytes << '\n' << text;
      }
}

}  // namespace
}  // namespace falcon::tune
