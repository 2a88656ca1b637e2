// What the planner carries out, what it waits for, and what it says of that: the job of controller_test.
#include "control/mitigation.h"

#include <gmock/gmock.h>

#include "controller_fixture.h"

namespace falcon::control::test {
namespace {

using testing::HasSubstr;

class FakeExchange final : public PlaceExchange {
 public:
  std::optional<double> expectedSeconds() const override { return expected; }
  Status begin(const rebalance::Plan& plan) override {
    if (refuses) return Error::system("no");
    begun.push_back(plan);
    return {};
  }
  State state() override { return now; }
  void abandon() override { ++abandoned; }

  std::optional<double> expected = 1;
  bool refuses = false;
  State now = State::working;
  std::vector<rebalance::Plan> begun;
  int abandoned = 0;
};

/// Two replicas of two stages: the rings of the gradients, 0-2 and 1-3, have no way around a slow link.
constexpr topology::Layout square{2, 2, 1};

std::vector<std::string> whats(const PlanState& state) {
  std::vector<std::string> all;
  for (const PlanDecision& each : state.decisions) all.push_back(each.what + " " + each.strategy);
  return all;
}

class MitigationTest : public ControllerTest {
 protected:
  FakeJob& slowLinkIn(FakeExchange& exchange) {
    ControllerSettings settings = automatic();
    settings.places = &exchange;
    FakeJob& job = start(settings, square, 1);
    job.links[{0, 2}] = job.links[{2, 0}] = 8;
    return job;
  }
};

TEST_F(MitigationTest, HandsAnExchangeOfPlacesToWhoCanCarryItOut) {
  FakeExchange exchange;
  FakeJob& job = slowLinkIn(exchange);
  ASSERT_TRUE(job.runUntil(verdict, 120)) << job.text();
  for (int i = 0; i < 60 && exchange.begun.empty(); ++i) job.run(1);
  ASSERT_EQ(exchange.begun.size(), 1u) << job.text();
  ASSERT_TRUE(exchange.begun[0].permutation);
  EXPECT_EQ(exchange.begun[0].kind, rebalance::PlanKind::swap);
  EXPECT_EQ(job.controller().state(), instrument::JobState::mitigating);
  EXPECT_EQ(job.count(mitigationApplied), 0) << "not before it is done";
  exchange.now = PlaceExchange::State::done;
  ASSERT_TRUE(job.runUntil(mitigationApplied, 10)) << job.text();
  EXPECT_EQ(job.last(mitigationApplied)->action, "swap");
  EXPECT_EQ(job.controller().mitigations(), (Mitigation::Counts{{{"swap", "applied"}, 1}}));
  EXPECT_EQ(job.controller().plans().inForce.size(), 1u);
}

TEST_F(MitigationTest, OfAnExchangeThatFailsEverythingStays) {
  FakeExchange exchange;
  exchange.now = PlaceExchange::State::failed;
  FakeJob& job = slowLinkIn(exchange);
  ASSERT_TRUE(job.runUntil(mitigationRefused, 120)) << job.text();
  EXPECT_THAT(job.last(mitigationRefused)->text, HasSubstr("old places"));
  EXPECT_EQ(job.count(mitigationApplied), 0);
  EXPECT_TRUE(job.controller().plans().inForce.empty());
}

TEST_F(MitigationTest, AdvisesWhatCannotBeBegun) {
  FakeExchange exchange;
  exchange.refuses = true;
  FakeJob& job = slowLinkIn(exchange);
  ASSERT_TRUE(job.runUntil(mitigationAdvised, 120)) << job.text();
  EXPECT_THAT(job.last(mitigationAdvised)->text, HasSubstr("swap nodes"));
  EXPECT_THAT(whats(job.controller().plans()), testing::Contains("refused swap"));
}

// Ranks can exchange their roles, which no rank has memory for.
TEST_F(MitigationTest, TheLineOfAnExchangeThatMemoryForbidsNamesIt) {
  FakeExchange exchange;
  FakeJob& job = slowLinkIn(exchange);
  for (Rank rank = 0; rank < square.size(); ++rank) {
    const auto at = square.coordinatesOf(rank);
    PartKnown known{square.dataSize, square.pipelineSize, square.tensorSize, at.data, at.pipeline, at.tensor, 32, {}};
    known.role = rank;
    known.stateBytes = 3'000'000'000;
    job.say(rank, known);
    job.say(rank, MemoryKnown{{{"machine of rank " + std::to_string(rank), 1'000'000'000}}});
  }
  ASSERT_TRUE(job.runUntil(verdict, 120)) << job.text();
  for (int i = 0; i < 10 && job.controller().plans().decisions.empty(); ++i) job.run(1);
  ASSERT_FALSE(job.controller().plans().decisions.empty());
  const std::string line = lineOf(job.controller().plans().decisions.back());
  EXPECT_THAT(line, AllOf(HasSubstr("memory is too little for a better order"),
                          HasSubstr("has 1000 MB left, and role "), HasSubstr("takes 3067 MB")));
  ASSERT_TRUE(job.runUntil(mitigationAdvised, 3000)) << job.text();
  EXPECT_THAT(job.last(mitigationAdvised)->text, HasSubstr("memory is too little"));
  EXPECT_TRUE(exchange.begun.empty());
}

TEST_F(MitigationTest, AnExchangeWaitsForItsPrice) {
  FakeExchange exchange;
  exchange.expected = 40;
  FakeJob& job = slowLinkIn(exchange);
  ASSERT_TRUE(job.runUntil(verdict, 120)) << job.text();
  job.run(2);
  EXPECT_TRUE(exchange.begun.empty());
  ASSERT_EQ(job.controller().plans().waiting.size(), 1u);
  const WaitingPlan waiting = job.controller().plans().waiting[0];
  EXPECT_EQ(waiting.strategy, "swap");
  EXPECT_EQ(waiting.priceSeconds, 40);
  EXPECT_LT(waiting.lossSeconds, 40);
  for (int i = 0; i < 300 && exchange.begun.empty(); ++i) job.run(1);
  EXPECT_EQ(exchange.begun.size(), 1u) << job.text();
}

TEST_F(MitigationTest, EachDecisionIsALine) {
  FakeJob& job = start();
  job.compute[3] = 3;
  ASSERT_TRUE(job.runUntil(mitigationApplied, 120)) << job.text();
  EXPECT_EQ(whats(job.controller().plans()), (std::vector<std::string>{"planned re-split", "applied re-split"}));
  const std::string line = lineOf(job.controller().plans().decisions.back());
  EXPECT_THAT(line, HasSubstr("applied re-split: lost "));
  EXPECT_THAT(line, HasSubstr("price "));
  EXPECT_THAT(line, HasSubstr("gain "));
  EXPECT_THAT(line, HasSubstr("micro-batches split"));
  EXPECT_THAT(toJson(job.controller().plans()), HasSubstr(R"("strategy":"re-split")"));
  job.compute.clear();
  ASSERT_TRUE(job.runUntil(mitigationUndone, 120)) << job.text();
  EXPECT_EQ(whats(job.controller().plans()).back(), "undone re-split");
  EXPECT_TRUE(job.controller().plans().inForce.empty());
}

TEST_F(MitigationTest, KeepsTheNewestDecisionsOnly) {
  PlanState state;
  for (int i = 0; i < 100; ++i) state.add({.what = "advised", .text = std::to_string(i)});
  EXPECT_EQ(state.decisions.size(), PlanState::keptDecisions);
  EXPECT_EQ(state.decisions.back().text, "99");
  EXPECT_EQ(state.version, 100u);
}

/// A framework that asks whether a restart is wanted, and says what one takes.
void canRestart(FakeJob& job, double seconds) {
  RestartKnown known;
  known.asked = true;
  known.expectedSeconds = seconds;
  for (Rank rank = 0; rank < 8; ++rank) job.say(rank, known);
}

TEST_F(MitigationTest, EscalatesToARestartWhereASplitHelpedTooLittle) {
  FakeJob& job = start();
  canRestart(job, 30);
  job.compute[2] = 12;  // whatever it has to do takes long
  ASSERT_TRUE(job.runUntil(mitigationApplied, 120)) << job.text();
  EXPECT_EQ(job.first(mitigationApplied)->action, "split");
  ASSERT_TRUE(job.runUntil(mitigationApplied, 600, 2)) << job.text();
  EXPECT_EQ(job.last(mitigationApplied)->action, "restart");
  EXPECT_THAT(job.last(mitigationApplied)->text, HasSubstr("helps too little"));
}

// A re-route has helped; then programs outside of the job take the processors.
TEST_F(MitigationTest, DoesNotEscalateForWhatAHostsOtherProgramsTake) {
  FakeJob job(automatic());
  job.othersCores = 0.2;
  ASSERT_TRUE(job.runUntil(baselineTaken, 30)) << job.text();
  canRestart(job, 1);
  job.run(20);
  job.links[{0, 2}] = 8;
  ASSERT_TRUE(job.runUntil(mitigationApplied, 120)) << job.text();
  EXPECT_EQ(job.first(mitigationApplied)->action, "reroute");
  job.run(20);
  job.everyone = 1.4;
  job.othersCores = 4;
  ASSERT_TRUE(job.runUntil(verdict, 60, 2)) << job.text();
  ASSERT_EQ(job.last(verdict)->culprit.kind, CulpritKind::host) << job.text();
  job.run(120);
  EXPECT_EQ(job.count(mitigationApplied), 1) << job.text();
}

TEST_F(MitigationTest, DoesNotRestartWhatIsMendedHoweverCheapThatWere) {
  FakeJob& job = start();
  canRestart(job, 1);
  job.links[{0, 2}] = 8;
  ASSERT_TRUE(job.runUntil(mitigationApplied, 120)) << job.text();
  job.run(300);
  EXPECT_EQ(job.count(mitigationApplied), 1) << job.text();
}

}  // namespace
}  // namespace falcon::control::test
