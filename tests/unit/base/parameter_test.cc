#include "base/parameter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/parameters.h"
#include "unit/base/environment.h"

namespace falcon {
namespace {

constexpr IntegerParameter integer{"FALCON_TEST_INTEGER", 7, 1, 10, "An integer."};
constexpr NumberParameter number{"FALCON_TEST_NUMBER", 0.5, 0, 100, "A number."};
constexpr SwitchParameter toggle{"FALCON_TEST_SWITCH", true, "A switch."};
constexpr DurationParameter duration{"FALCON_TEST_DURATION", 10s, 100ms, 1h, "A duration."};
constexpr TextParameter text{"FALCON_TEST_TEXT", "default", "A text."};
constexpr const char* words[] = {"off", "advise", "auto"};
constexpr ChoiceParameter choice{"FALCON_TEST_CHOICE", words, 1, "A choice."};

/// The parameter's value while its variable is set to `value`.
template <class Row>
auto with(const Row& row, const char* value) {
  const Variable variable(row.name(), value);
  return row.value();
}

TEST(Parameter, HasItsDefaultWhenNobodySetsIt) {
  EXPECT_EQ(with(integer, nullptr), 7);
  EXPECT_EQ(with(number, nullptr), 0.5);
  EXPECT_TRUE(with(toggle, nullptr));
  EXPECT_EQ(with(duration, nullptr).count(), Nanoseconds(10s).count());
  EXPECT_EQ(with(text, nullptr), "default");
  EXPECT_EQ(with(choice, nullptr), 1);
}

TEST(Parameter, TakesValuesUpToTheEndsOfItsRange) {
  EXPECT_EQ(with(integer, "1"), 1);
  EXPECT_EQ(with(integer, "10"), 10);
  EXPECT_EQ(with(number, "99.5"), 99.5);
  EXPECT_FALSE(with(toggle, "0"));
  EXPECT_EQ(with(text, ""), "");
  EXPECT_EQ(with(choice, "auto"), 2);
}

TEST(Parameter, KeepsItsDefaultForWhatIsNotValid) {
  for (const char* bad : {"0", "11", "-3", "3x", "", "99999999999999999999", " 3"})
    EXPECT_EQ(with(integer, bad), 7) << bad;
  for (const char* bad : {"-0.1", "101", "nan", "half", ""}) EXPECT_EQ(with(number, bad), 0.5) << bad;
  for (const char* bad : {"yes", "", "2", "true"}) EXPECT_TRUE(with(toggle, bad)) << bad;
  for (const char* bad : {"Auto", "", "on"}) EXPECT_EQ(with(choice, bad), 1) << bad;
}

TEST(Parameter, ReadsDurationsWithUnits) {
  EXPECT_EQ(with(duration, "500ms").count(), Nanoseconds(500ms).count());
  EXPECT_EQ(with(duration, "3").count(), Nanoseconds(3s).count());
  EXPECT_EQ(with(duration, "2.5s").count(), Nanoseconds(2500ms).count());
  EXPECT_EQ(with(duration, "5m").count(), Nanoseconds(5min).count());
  EXPECT_EQ(with(duration, "1h").count(), Nanoseconds(1h).count());
  for (const char* bad : {"99ms", "2h", "10 s", "s", "-1s", "1.2.3s", "10us", "1e300h", ""})
    EXPECT_EQ(with(duration, bad).count(), Nanoseconds(10s).count()) << bad;
}

TEST(Parameters, AreAllListedOnceAndDescribed) {
  std::set<std::string> names;
  const std::string page = parameterReference();
  for (const ParameterRow* row : allParameters()) {
    EXPECT_TRUE(names.insert(row->name()).second) << row->name();
    EXPECT_TRUE(std::string_view(row->description()).ends_with('.')) << row->name();
    EXPECT_NE(page.find("`" + std::string(row->name()) + "`"), std::string::npos);
    EXPECT_FALSE(row->rangeText().empty());
  }
  EXPECT_TRUE(names.contains("NCCL_FALCON"));
}

TEST(Parameters, DefaultsLieInTheirRanges) {
  // A default that its own row would refuse could not be written down by a user.
  for (const ParameterRow* row : allParameters()) {
    if (row->defaultText().empty()) continue;
    const auto lines = [&] {
      const Variable variable(row->name(), row->defaultText().c_str());
      testing::internal::CaptureStderr();
      if (const auto* one = dynamic_cast<const IntegerParameter*>(row)) one->value();
      if (const auto* one = dynamic_cast<const NumberParameter*>(row)) one->value();
      if (const auto* one = dynamic_cast<const SwitchParameter*>(row)) one->value();
      if (const auto* one = dynamic_cast<const DurationParameter*>(row)) one->value();
      if (const auto* one = dynamic_cast<const ChoiceParameter*>(row)) one->value();
      return testing::internal::GetCapturedStderr();
    }();
    EXPECT_EQ(lines, "") << row->name();
  }
}

TEST(Parameters, ThatNobodyKnowsAreNamed) {
  const Variable typingError("NCCL_FALCON_MITIGAT", "auto"), known("NCCL_FALCON_MITIGATE", "auto");
  const auto unknown = unknownParameters();
  EXPECT_EQ(std::count(unknown.begin(), unknown.end(), "NCCL_FALCON_MITIGAT"), 1);
  EXPECT_EQ(std::count(unknown.begin(), unknown.end(), "NCCL_FALCON_MITIGATE"), 0);
}

}  // namespace
}  // namespace falcon
