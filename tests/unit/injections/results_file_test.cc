#include "injections/results_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "demo/child_process.h"
#include "work_folder.h"

namespace falcon::injections {
namespace {

class Results : public testing::Test {
 protected:
  const tools::WorkFolder folder_{"results-test"};
  const std::string path_ = folder_.path() + "/results";
};

TEST_F(Results, GoOnWhereTheyEnded) {
  Row row{.truth = "rank 3", .verdict = "rank 3", .right = true, .delayIterations = 4, .delaySeconds = 3.5};
  ResultsFile(path_, 5).add(row);
  Row wrong{.truth = "rank 1", .verdict = "none"};
  ResultsFile(path_, 5).add(wrong);
  const ResultsFile again(path_, 5);
  ASSERT_EQ(again.rows().size(), 2u);
  EXPECT_EQ(toJson(again.rows()[0]), toJson(row));
  EXPECT_EQ(toJson(again.rows()[1]), toJson(wrong));
}

TEST_F(Results, OfAnotherSeedAreRefusedAndStay) {
  ResultsFile(path_, 5).add({});
  const std::string before = demo::readFile(path_);
  EXPECT_THROW(ResultsFile(path_, 6), std::runtime_error);
  EXPECT_EQ(demo::readFile(path_), before);
}

TEST_F(Results, ThatAreNoneAreRefusedAndStay) {
  for (const std::string text : {"a shopping list\nmilk\n", "a shopping list", "\n"}) {
    std::ofstream(path_) << text;
    EXPECT_THROW(ResultsFile(path_, 5), std::runtime_error);
    EXPECT_EQ(demo::readFile(path_), text);
  }
}

TEST_F(Results, ALineCutShortIsDoneAgain) {
  ResultsFile(path_, 5).add({.truth = "rank 3"});
  std::ofstream(path_, std::ios::app) << "{\"truth\":\"ra";
  {
    ResultsFile results(path_, 5);
    EXPECT_EQ(results.rows().size(), 1u);
    results.add({.truth = "rank 4"});
  }
  const ResultsFile again(path_, 5);
  ASSERT_EQ(again.rows().size(), 2u);
  EXPECT_EQ(again.rows()[1].truth, "rank 4");
}

TEST_F(Results, AreKeptByOneAtATime) {
  {
    ResultsFile first(path_, 5);
    EXPECT_THROW(ResultsFile(path_, 5), std::runtime_error);
    first.add({.truth = "rank 3"});
  }
  EXPECT_EQ(ResultsFile(path_, 5).rows().size(), 1u);
}

}  // namespace
}  // namespace falcon::injections
