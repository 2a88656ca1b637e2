// Observations of real validations, as their events told them: who is named must not change unnoticed. Recorded from
// `falcon injections --sweep --keep-logs` (8 ranks on 4 nodes, links shaped by tc to 200 Mbit/s), a line each.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "diagnose/account.h"

namespace falcon::diagnose {
namespace {

using nlohmann::json;

Quantity quantityOf(const std::string& name) {
  for (const Quantity quantity : {Quantity::ownTime, Quantity::computeTest, Quantity::heldBack, Quantity::gpuTest,
                                  Quantity::transferTime, Quantity::linkTest})
    if (nameOf(quantity) == name) return quantity;
  ADD_FAILURE() << name;
  return Quantity::ownTime;
}

Observation observationFrom(const json& told) {
  const Thresholds thresholds;
  Observation seen{.quantity = quantityOf(told.at("what"))};
  seen.rank = told.value("rank", -1);
  seen.link = {told.value("from", -1), told.value("to", -1)};
  seen.value =
      told.contains("slower") ? std::log(told.at("slower").get<double>()) : std::numeric_limits<double>::infinity();
  seen.sigma = told.at("deviation");
  seen.settled = told.value("settled", true);
  // Two ranks share a node there.
  seen.overNetwork = isOfLinks(seen.quantity) && seen.link.from / 2 != seen.link.to / 2;
  if (seen.quantity == Quantity::linkTest) seen.aloneFrom = thresholds.aloneLink;
  if (seen.quantity == Quantity::ownTime || seen.quantity == Quantity::computeTest)
    seen.aloneFrom = thresholds.aloneRank;
  return seen;
}

std::vector<Candidate> candidatesOf(const std::vector<Observation>& observations) {
  std::set<Candidate> candidates;
  for (const Observation& each : observations) {
    if (!isOfLinks(each.quantity)) candidates.insert({.kind = CandidateKind::rank, .rank = each.rank});
    if (each.quantity != Quantity::linkTest) continue;
    candidates.insert({.kind = CandidateKind::link, .link = each.link});
    if (!each.overNetwork) continue;
    candidates.insert({.kind = CandidateKind::interfaceOut, .ranks = {each.link.from}});
    candidates.insert({.kind = CandidateKind::interfaceIn, .ranks = {each.link.to}});
  }
  return {candidates.begin(), candidates.end()};
}

TEST(Golden, OfRealValidationsTheSameAreNamed) {
  std::ifstream file(FALCON_TEST_DATA "/golden.jsonl");
  int rows = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    const json row = json::parse(line);
    std::vector<Observation> observations;
    for (const json& told : row.at("observed")) observations.push_back(observationFrom(told));
    std::set<std::string> named;
    for (const Explanation& each : accountOf(observations, candidatesOf(observations)).explanations)
      if (each.isNamed) named.insert(nameOf(each.candidate));
    EXPECT_EQ(named, row.at("named").get<std::set<std::string>>()) << row.at("what");
  }
  EXPECT_GE(rows, 10);
}

}  // namespace
}  // namespace falcon::diagnose
