#include "injections/bad_cases.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "base/format.h"
#include "demo/dice.h"
#include "injections/noisy_links.h"
#include "injections/victim.h"
#include "machine/description.h"
#include "machine/guardian.h"
#include "machine/net_namespace.h"
#include "machine/program.h"

namespace falcon::injections {
namespace {

using demo::Said;

constexpr double forAllSlow = 30;
constexpr double forTrap = 60;
constexpr double forNoisyVerdict = 40;
constexpr double forEnd = 60;
// Where the kernel shares out by cgroup or session, all of them together may get no more than one rank: a tenth.
constexpr long neighboursPerCore = 4;

template <class Value>
Value orThrow(Result<Value> value) {
  if (!value) throw std::runtime_error(value.error().message());
  return std::move(*value);
}

bool isSaid(const SlowJob& job, const char* kind) {
  return std::any_of(job.said().begin(), job.said().end(), [&](const Said& each) { return each.kind == kind; });
}

/// Not certain is right; a verdict must be true.
Row rowOf(const std::string& what, const std::vector<Culprit>& mayBeNamed, SlowJob& job) {
  Row row = scoreOf({.truth = mayBeNamed, .said = job.takeSaid(), .iterationEnds = {}});
  row.truth = what;
  row.right = row.innocent == 0;
  row.delayIterations.reset();  // nobody noted when it became effective
  row.delaySeconds.reset();
  row.trapSeconds.reset();
  row.validationSeconds.reset();
  return row;
}

/// A link that is being tested because it is slow.
class TestedLink {
 public:
  TestedLink(std::uint64_t seed, SlowJob& job) {
    demo::Dice dice(seed);
    injection_.culprit = demo::drawLink(dice, job.surroundings().shape);
    injection_.factor = 2.5;
    victim_.emplace(job, injection_, 0);
    if (!job.lookUntil([&] { return victim_->isSlowed() && isSaid(job, "trap-closed"); }, forTrap))
      throw std::runtime_error("the job was not held for a test: " + victim_->errors());
    other_ = dice.below(job.surroundings().shape.ranks);
  }
  Culprit culprit() const { return injection_.culprit; }
  Culprit bothWays() const {
    Culprit culprit = injection_.culprit;
    culprit.bothWays = true;
    return culprit;
  }
  Rank anyRank() const { return other_; }

 private:
  demo::Injection injection_;
  std::optional<Victim> victim_;
  Rank other_ = 0;
};

Row deadRank(std::uint64_t seed, SlowJob& job) {
  const TestedLink link(seed, job);
  const auto description = orThrow(tools::readDescription(job.file("job.json")));
  const auto victim = orThrow(tools::rankOf(description, link.anyRank()));
  if (::kill(victim.process, SIGKILL) != 0) throw std::runtime_error("the rank was gone already");
  if (!job.lookUntilItEnds(forEnd)) throw std::runtime_error("the job did not end, a minute after a rank died");
  return rowOf(fmt::format("rank {} dies", link.anyRank()), {link.culprit()}, job);
}

Row deadLink(std::uint64_t seed, SlowJob& job) {
  const TestedLink link(seed, job);
  const auto description = orThrow(tools::readDescription(job.file("job.json")));
  const auto from = orThrow(tools::rankOf(description, link.culprit().link.from));
  const auto to = orThrow(tools::rankOf(description, link.culprit().link.to));
  // A rule before those that `falcon run` gave every rank's address.
  const auto rule = [from, to](const char* verb) {
    const auto inside = tools::openNetNamespace(from.netNamespace);
    if (!inside) return false;
    return bool(tools::runProgram(
        {{"ip", "rule", verb, "priority", "100", "from", from.address, "to", to.address, "blackhole"}, inside->get()}));
  };
  const auto guardian = orThrow(tools::Guardian::start({[rule] { rule("del"); }, {}, -1}));
  if (!rule("add")) throw std::runtime_error("no rule can be added in the rank's network namespace");
  // Longer than NCCL_FALCON_DEATH_TIMEOUT.
  if (!job.lookUntilItEnds(forEnd)) throw std::runtime_error("the job stands still, a minute after its link went down");
  return rowOf(fmt::format("link {} -> {} is down", from.rank, to.rank), {link.bothWays()}, job);
}

Row noise(std::uint64_t seed, SlowJob& job) {
  demo::Dice dice(seed);
  Culprit slow = demo::drawLink(dice, job.surroundings().shape);
  slow.bothWays = false;
  NoisyLinks links(orThrow(tools::readDescription(job.file("job.json"))), job.surroundings().shape, slow.link, seed);
  // It begins after the baseline: whatever the limit alone does is seen first, and may accuse nobody.
  job.wait(25);
  std::vector<Said> before = job.said();
  if (std::any_of(before.begin(), before.end(), [](const Said& each) { return each.kind == "verdict"; }))
    return rowOf("noise of 5 % on every link", {}, job);
  links.slowOneDown();
  job.lookUntil([&] { return isSaid(job, "verdict"); }, forNoisyVerdict);
  return rowOf(fmt::format("noise, and {}", falcon::nameOf(slow)), {slow}, job);
}

Row busy(SlowJob& job) {
  const auto file = [&](const char* name) { return job.file(fmt::format("busy.{}", name)); };
  {
    std::vector<demo::ChildProcess> neighbours;
    const long cores = std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN));
    for (long neighbour = 0; neighbour < neighboursPerCore * cores; ++neighbour)
      neighbours.emplace_back(std::vector<std::string>{"/bin/sh", "-c", "while :; do :; done"},
                              std::map<std::string, std::string>{}, file("out"), file("err"));
    job.wait(40);
  }
  job.wait(20);
  return rowOf("busy neighbours", {}, job);
}

Row allSlow(SlowJob& job) {
  std::vector<Victim> victims;
  std::vector<Culprit> all;
  for (Rank rank = 0; rank < job.surroundings().shape.ranks; ++rank) {
    all.push_back({.kind = CulpritKind::rank, .rank = rank});
    victims.emplace_back(job, demo::Injection{.culprit = all.back(), .factor = 2}, victims.size());
  }
  const auto slowed = [&] {
    return std::all_of(victims.begin(), victims.end(), [](const Victim& each) { return each.isSlowed(); });
  };
  if (!job.lookUntil(slowed, forAllSlow)) throw std::runtime_error("not all ranks could be slowed");
  job.wait(30);
  for (Victim& each : victims) each.end();
  job.wait(15);
  return rowOf("all ranks are slow", all, job);
}

}  // namespace

std::vector<std::string> badCases() {
  return {"dead-rank", "dead-link", "noise", "busy", "all-slow"};
}

Row runBadCase(const std::string& name, std::uint64_t seed, SlowJob& job) {
  if (name == "dead-rank") return deadRank(seed, job);
  if (name == "dead-link") return deadLink(seed, job);
  if (name == "noise") return noise(seed, job);
  if (name == "busy") return busy(job);
  return allSlow(job);
}

}  // namespace falcon::injections
