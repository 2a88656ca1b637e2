// Every kind of event, with and without what may be left out, is as the published schema says.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <set>

#include "harness/json_schema.h"
#include "report/json_lines.h"

namespace falcon::report {
namespace {

using nlohmann::json;

// Other readers pass over new keys; here every key has to be in the schema.
json strictSchema() {
  json schema = json::parse(std::ifstream(FALCON_EVENT_SCHEMA));
  schema["additionalProperties"] = false;
  return schema;
}

Event fullEvent(EventKind kind) {
  Event event{.kind = kind, .time = std::chrono::seconds(90), .wallTime = 1.7e9, .iteration = 41};
  event.beforeMilliseconds = 500.25;
  event.afterMilliseconds = 750;
  event.confidence = 0.99;
  event.severity = 3;
  event.durationSeconds = 1.5;
  event.culprit = {.kind = CulpritKind::link, .link = {0, 3}, .bothWays = true};
  event.suspects = {{{3}, 1.8}, {{0, 2}, 2.5}};
  event.observed = {{"own time", 3, {}, 1.8, 0.05},
                    {"link test", -1, {0, 2}, 2.5, 0.01},
                    {"transfer time", -1, {0, 2}, std::numeric_limits<double>::infinity(), 0.1}};
  event.ranges = {{3, "a \"name\"", 10.5, 20}};
  event.action = "reroute";
  event.text = "from \"0\" to 3\n";
  return event;
}

TEST(EventSchema, HoldsForEveryKind) {
  const json schema = strictSchema();
  std::set<std::string> kinds;
  for (int i = 0; i < eventKindCount; ++i) {
    Event full = fullEvent(static_cast<EventKind>(i)), bare;
    bare.kind = full.kind;
    kinds.insert(nameOf(full.kind));
    Event rank = full;
    rank.culprit = {.kind = CulpritKind::rank, .rank = 3};
    for (const Event& event : {full, rank, bare}) {
      const json line = json::parse(toJson(event));
      EXPECT_EQ(harness::violation(line, schema), "") << line;
    }
  }
  EXPECT_EQ(kinds, schema["properties"]["kind"]["enum"].get<std::set<std::string>>());
}

TEST(EventSchema, RefusesWhatIsNoEvent) {
  const json schema = strictSchema();
  const json good = json::parse(toJson(fullEvent(EventKind::verdict)));
  const auto with = [&](const char* key, const json& value) {
    json changed = good;
    changed[key] = value;
    return harness::violation(changed, schema);
  };
  EXPECT_EQ(with("iteration", 42), "");
  EXPECT_NE(with("kind", "on-set"), "");
  EXPECT_NE(with("v", 2), "");
  EXPECT_NE(with("iteration", "41"), "");
  EXPECT_NE(with("iteration", 1.5), "");
  EXPECT_NE(with("confidence", 1.01), "");
  EXPECT_NE(with("surprise", 1), "");
  EXPECT_NE(with("culprit", {{"kind", "rank"}}), "");
  EXPECT_EQ(with("culprit", {{"kind", "host"}, {"host", "worker-7"}}), "");
  EXPECT_NE(with("culprit", {{"kind", "host"}, {"rank", 1}}), "");
  EXPECT_NE(with("culprit", {{"kind", "rank"}, {"rank", 1}, {"from", 2}}), "");
  EXPECT_NE(with("ranges", {{{"rank", 3}}}), "");
  EXPECT_NE(with("severity", 5), "");
  EXPECT_NE(with("suspects", {{{"growth", 1.5}}}), "");
  EXPECT_NE(with("observed", {{{"what", "a feeling"}, {"rank", 1}, {"deviation", 0.1}}}), "");
  json short_ = good;
  short_.erase("text");
  EXPECT_NE(harness::violation(short_, schema), "");
  EXPECT_NE(harness::violation(good, {{"not", {{"type", "object"}}}}), "") << "a word it does not know";
}

}  // namespace
}  // namespace falcon::report
