#include "plan/plan_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace falcon::plan {
namespace {

using testing::HasSubstr;

TEST(PlanText, ShowsWhatIsInForceWhatWaitsAndWhy) {
  const auto state = nlohmann::json::parse(R"({"in_force":["ring 0-2-1-3"],
      "waiting":[{"strategy":"restart","loss_s":12.34,"price_s":60,"text":"rank 3 is slow"}],
      "decisions":[{"wall_time_s":0,"line":"applied re-route: lost 1.0 s, price 0.4 s: ring 0-2-1-3"}]})");
  const std::string text = textOf("x", state);
  EXPECT_THAT(text, HasSubstr("job x\nin force: ring 0-2-1-3\n"));
  EXPECT_THAT(text, HasSubstr("waits:    restart: lost 12.3 s of its price of 60.0 s: rank 3 is slow\n"));
  EXPECT_THAT(text, HasSubstr("applied re-route: lost 1.0 s, price 0.4 s: ring 0-2-1-3\n"));
}

// The file is what a process of another version may have left.
TEST(PlanText, LeavesOutWhatIsNotThere) {
  for (const char* content : {"{}", R"({"in_force":7,"waiting":[3,{}],"decisions":{"a":1}})", R"({"decisions":[[]]})"})
    EXPECT_THAT(textOf("x", nlohmann::json::parse(content)), HasSubstr("in force: nothing"));
}

}  // namespace
}  // namespace falcon::plan
