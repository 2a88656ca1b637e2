#include "metrics/event_facts.h"

#include <gtest/gtest.h>

#include "report/json_lines.h"

namespace falcon::metrics {
namespace {

std::string line(EventKind kind, const Culprit& culprit = {}, const std::string& action = "") {
  Event event{.kind = kind, .culprit = culprit, .action = action, .text = "text"};
  return report::toJson(event);
}

const Culprit rank3{.kind = CulpritKind::rank, .rank = 3};
const Culprit link02{.kind = CulpritKind::link, .link = {0, 2}};

TEST(EventFacts, AFailSlowIsActiveFromItsVerdictToItsRelief) {
  EventFacts facts;
  facts.add(line(EventKind::jobStarted));
  facts.add(line(EventKind::onset));
  EXPECT_EQ(facts.active("rank"), 0);
  facts.add(line(EventKind::verdict, rank3));
  facts.add(line(EventKind::verdict, link02));
  facts.add(line(EventKind::verdict, rank3));  // measured again
  EXPECT_EQ(facts.active("rank"), 1);
  EXPECT_EQ(facts.active("link"), 1);
  facts.add(line(EventKind::relief));  // of nobody that was named
  facts.add(line(EventKind::relief, rank3));
  EXPECT_EQ(facts.active("rank"), 0);
  EXPECT_EQ(facts.active("link"), 1);
}

TEST(EventFacts, AnotherRunOfTheJobBeginsHealthyAndKeepsCounting) {
  EventFacts facts;
  facts.add(line(EventKind::verdict, rank3));
  facts.add(line(EventKind::mitigationApplied, rank3, "split"));
  facts.add(line(EventKind::jobStarted));
  EXPECT_EQ(facts.active("rank"), 0);
  facts.add(line(EventKind::mitigationApplied, rank3, "split"));
  facts.add(line(EventKind::mitigationRefused, link02, "reroute"));
  facts.add(line(EventKind::mitigationAdvised, link02));  // words are no deed
  const std::map<std::pair<std::string, std::string>, int> expected{{{"split", "applied"}, 2},
                                                                    {{"reroute", "refused"}, 1}};
  EXPECT_EQ(facts.mitigations(), expected);
}

TEST(EventFacts, AMinorSlownessIsActiveUntilItIsOver) {
  EventFacts facts;
  EXPECT_FALSE(facts.minor());
  for (const EventKind end : {EventKind::minorOver, EventKind::jobEnded, EventKind::jobStarted}) {
    facts.add(line(EventKind::minor, rank3));
    EXPECT_TRUE(facts.minor());
    EXPECT_EQ(facts.active("rank"), 0) << "who is likely to blame was not tested";
    facts.add(line(EventKind::relief));  // of something else
    EXPECT_TRUE(facts.minor());
    facts.add(line(end));
    EXPECT_FALSE(facts.minor()) << nameOf(end);
  }
}

TEST(EventFacts, WhatIsNoEventIsPassedOver) {
  EventFacts facts;
  for (const char* text : {"", "{", "[1]", "7", "{\"kind\":3}", "{\"kind\":\"verdict\",\"culprit\":\"rank 3\"}",
                           "{\"kind\":\"mitigation-applied\",\"action\":3}"})
    facts.add(text);
  EXPECT_EQ(facts.active("rank"), 0);
}

}  // namespace
}  // namespace falcon::metrics
