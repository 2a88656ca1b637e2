#include "made_up_job.h"

#include <functional>
#include <string>
#include <utility>

#include "control/waiting.h"
#include "diagnose/suspicion.h"
#include "diagnose/verdict.h"
#include "unit/control/fake_job.h"

namespace falcon::documents {
namespace {

using control::test::FakeJob;

constexpr Rank slowOne = 3;

// Faults come, stay for a minute each, and go.
std::vector<Told> toldThrough(const std::vector<std::function<void(FakeJob&)>>& faults) {
  control::ControllerSettings settings;
  settings.mitigate = control::MitigateMode::automatic;
  FakeJob job(settings);
  job.run(30);
  for (const auto& fault : faults) {
    fault(job);
    job.run(60);
  }
  job.controller().end(1000);
  std::vector<Told> told;
  for (const Event& event : job.events()) told.push_back({nameOf(event.kind), event.text});
  return told;
}

std::vector<diagnose::RankFigures> healthyRanks() {
  std::vector<diagnose::RankFigures> ranks;
  for (Rank rank = 0; rank < 8; ++rank) {
    diagnose::RankFigures figures{
        .rank = rank, .score = 10, .throttledShare = 0, .memoryRate = 1e9, .ownTimeGrowth = 1};
    figures.evidence = {.throttled = 0, .waited = 0, .stolen = 0, .ran = 1, .processors = 2, .thermalThrottles = 0};
    ranks.push_back(figures);
  }
  return ranks;
}

// The rules that may name a rank, and the causes that may be told of it.
std::vector<Told> verdictsOnRanks() {
  using Figures = diagnose::RankFigures;
  const std::function<void(Figures&)> faults[] = {
      [](Figures& rank) { rank.throttledShare = rank.evidence.throttled = 0.6, rank.ownTimeGrowth = 2.5; },
      [](Figures& rank) { rank.ownTimeGrowth = 4; },
      [](Figures& rank) { rank.score = 3, rank.ownTimeGrowth = 3, rank.evidence.waited = 0.6; },
      [](Figures& rank) {
        rank.score = 3, rank.ownTimeGrowth = 3, rank.evidence.waited = 0.6, rank.evidence.processors = 1;
      },
      [](Figures& rank) { rank.score = 3, rank.ownTimeGrowth = 3, rank.evidence.stolen = 0.6; },
      [](Figures& rank) { rank.score = 3, rank.ownTimeGrowth = 3, rank.memoryRate = 1e8; },
      [](Figures& rank) { rank.score = 3, rank.ownTimeGrowth = 3; },
      [](Figures& rank) { rank.score = validate::unknown, rank.ownTimeGrowth = 4; },
  };
  std::vector<Told> told;
  for (const auto& fault : faults) {
    diagnose::Measurements measured{.ranks = healthyRanks()};
    fault(measured.ranks[slowOne]);
    told.push_back({nameOf(EventKind::verdict), diagnose::judgementOf(measured).ranks.at(0).evidence});
  }
  return told;
}

// Every end of the chain of waiting, as the first and as another, and a group that only waits.
std::vector<Told> suspicions() {
  using enum instrument::DelaySource::Kind;
  instrument::DelaySource oneStretch{.kind = rank, .rank = slowOne, .oneStretch = true};
  std::vector<instrument::Blame> blames(1);
  for (const auto kind : {rank, link, group, everybody}) {
    const instrument::DelaySource source{.kind = kind, .rank = slowOne, .link = {0, 2}, .share = 0.5};
    blames.push_back({.sources = {source, source}});
  }
  blames.push_back({.sources = {oneStretch, oneStretch}});
  std::vector<Told> told;
  std::vector<std::string> texts;
  for (const auto& blame : blames) texts.push_back(control::sentenceOf(blame, control::JobView()));
  diagnose::Suspicion waiting;
  waiting.groups = {{.growth = 2, .waitsOnly = true}};
  texts.push_back(diagnose::reasonFor(waiting, {}));
  for (const std::string& text : texts)
    for (const auto kind : {EventKind::suspicion, EventKind::trapClosed, EventKind::inconclusive})
      told.push_back({nameOf(kind), text});
  return told;
}

}  // namespace

std::vector<Told> toldOfMadeUpJobs() {
  const auto slowRank = [](FakeJob& job) { job.compute[slowOne] = 2.5; };
  const auto slowLink = [](FakeJob& job) { job.links[{0, 2}] = 15; };
  const auto anotherSlowLink = [](FakeJob& job) { job.links[{2, 4}] = 15; };
  const auto slowLinkBothWays = [](FakeJob& job) { job.links[{0, 2}] = job.links[{2, 0}] = 15; };
  const auto faster = [](FakeJob& job) { job.everyone = 0.6; };
  const auto busier = [](FakeJob& job) { job.everyone *= 1.5; };
  const auto well = [](FakeJob& job) {
    job.compute.clear();
    job.links.clear();
    job.everyone = 1;
  };
  std::vector<Told> all;
  for (const auto& told : {toldThrough({}), toldThrough({slowRank, well}), toldThrough({slowLinkBothWays, well}),
                           toldThrough({slowLink, well, anotherSlowLink, well}), toldThrough({faster}),
                           toldThrough({busier, busier, well})})
    all.insert(all.end(), told.begin(), told.end());
  return all;
}

std::vector<Told> sentencesOfChance() {
  std::vector<Told> all = verdictsOnRanks();
  for (Told& told : suspicions()) all.push_back(std::move(told));
  return all;
}

}  // namespace falcon::documents
