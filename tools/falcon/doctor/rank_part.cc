#include "doctor/rank_part.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>

#include "base/wire.h"
#include "diagnose/verdict.h"
#include "doctor/findings.h"
#include "doctor/link_rounds.h"
#include "doctor/links_to_test.h"
#include "doctor/neighbours.h"
#include "doctor/rank_world.h"

namespace falcon::doctor {
namespace {

constexpr std::size_t measuredFloats = 1 << 20;
constexpr int allReducesPerRound = 3;
constexpr int roundsThatCount = 3;

class Doctor {
 public:
  Doctor(RankWorld& world, const DoctorOptions& options, validate::WaveQueue queue)
      : world_(world), options_(options), queue_(std::move(queue)) {
    measured_.sites = world.sites();
  }

  Result<Measurements> run() {
    if (auto made = makeGroups(); !made) return made.error();
    if (auto done = testGpus(); !done) return done.error();
    for (int round = 0; round < options_.repeat; ++round)
      for (const auto step : {&Doctor::testRanks, &Doctor::testLinks, &Doctor::testGroups})
        if (auto done = (this->*step)(); !done) return done.error();
    if (auto done = confirmRanksAndGroups(); !done) return done.error();
    if (auto done = confirmLinks(); !done) return done.error();
    return std::move(measured_);
  }

 private:
  Status testRanks() {
    // Together, as in a job: cores and memory are shared then too.
    if (auto done = world_.network().barrier(stepLimit); !done) return done;
    const auto mine = measureRank(world_.reactor->address(), options_.spans, measured_.product);
    auto all = world_.network().allGather(encode(mine), stepLimit);
    if (!all) return all.error();
    measured_.rounds.emplace_back();
    for (const std::string& bytes : *all) {
      auto sample = decodeSample(bytes);
      if (!sample) return sample.error();
      measured_.rounds.back().push_back(*sample);
    }
    return {};
  }

  // Devices share nothing, so all at once.
  Status testGpus() {
    const auto& sites = measured_.sites;
    const auto self = sites.begin() + world_.rank();
    const auto before = std::count_if(sites.begin(), self, [&](const auto& one) { return one.host == self->host; });
    const auto mine = measureGpu(world_.rank(), static_cast<int>(before), options_.spans.gpu);
    const auto all = world_.network().allGather(encode(mine), stepLimit);
    if (!all) return all.error();
    for (const std::string& bytes : *all) {
      auto gpu = decodeGpu(bytes);
      if (!gpu) return gpu.error();
      if (*gpu) measured_.gpus.push_back(std::move(**gpu));
    }
    return {};
  }

  Status testLinks() {
    std::vector<validate::WaveLink> links;
    const auto id = world_.communicator->id();
    for (const Link& link : linksToTest(measured_.sites)) links.push_back({id, link, link.from, link.to});
    return runWaves(links);
  }

  Status runWaves(const std::vector<validate::WaveLink>& links) {
    queue_.add(links);
    return doctor::runWaves(world_, queue_, measured_.links);
  }

  // One odd test is no finding: what looks slow is tested until the median of three rounds counts. All ranks decide the
  // same from the same figures.
  Status confirmRanksAndGroups() {
    const Findings first = examine(measured_);
    const auto looksSlow = [&](std::initializer_list<Subject> subjects) {
      return std::any_of(first.slow.begin(), first.slow.end(), [&](const Finding& finding) {
        return std::find(subjects.begin(), subjects.end(), finding.subject) != subjects.end();
      });
    };
    const bool ranks = looksSlow({Subject::processor, Subject::memory, Subject::loopback});
    const bool groups = looksSlow({Subject::group});
    for (int round = options_.repeat; round < roundsThatCount; ++round) {
      if (ranks)
        if (auto done = testRanks(); !done) return done;
      if (groups)
        if (auto done = testGroups(); !done) return done;
    }
    return {};
  }

  // Links that look slow are measured again, one at a time, until it is certain or has been tried often enough.
  Status confirmLinks() {
    for (int attempt = 0; attempt < mostConfirmations; ++attempt) {
      diagnose::Measurements input;
      for (Rank rank = 0; rank < world_.size(); ++rank)
        input.ranks.push_back({.rank = rank, .score = typicalOf(measured_, rank).gigaflops32});
      input.links = measured_.links;
      const auto doubtful = diagnose::linksToConfirm(input, queue_.waves());
      if (doubtful.empty()) return {};
      for (const auto& link : doubtful)
        if (auto done = runWaves({link}); !done) return done;
    }
    return {};
  }

  Status makeGroups() {
    std::string text;
    char readable = 'y';
    if (world_.rank() == 0 && !options_.neighbours.empty()) {
      std::ifstream file(options_.neighbours);
      text.assign(std::istreambuf_iterator<char>(file), {});
      if (!file) readable = 'n';
    }
    const auto all = world_.network().allGather(readable + text, stepLimit);
    if (!all) return all.error();
    if ((*all)[0][0] != 'y') return Error::invalidArgument("--neighbours {}: cannot be read", options_.neighbours);
    std::vector<Neighbours> groups;
    if (options_.neighbours.empty()) {
      groups.push_back({"all", {}});
      for (Rank rank = 0; rank < world_.size(); ++rank) groups[0].ranks.push_back(rank);
    } else {
      auto parsed = parseNeighbours((*all)[0].substr(1), measured_.sites);
      if (!parsed) return Error::invalidArgument("--neighbours {}: {}", options_.neighbours, parsed.error().message());
      groups = std::move(*parsed);
    }
    std::erase_if(groups, [](const Neighbours& group) { return group.ranks.size() < 2; });
    int mine = -1;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto& ranks = groups[i].ranks;
      if (std::find(ranks.begin(), ranks.end(), world_.rank()) != ranks.end()) mine = static_cast<int>(i);
      measured_.groups.push_back({groups[i].name, ranks, {}});
    }
    auto made = partOf(world_, mine);
    if (!made) return made.error();
    group_ = std::move(*made);
    return {};
  }

  // All switches at the same time: they have nothing in common.
  Status testGroups() {
    if (measured_.groups.empty()) return {};
    double best = 0;
    std::vector<float> values(group_ ? measuredFloats : 0, 1.0f);
    if (auto done = world_.network().barrier(stepLimit); !done) return done;
    for (int i = 0; group_ && i <= allReducesPerRound; ++i) {
      const auto time = timeAllReduce(*group_, values);
      if (!time) return time.error();
      if (i == 1 || (i > 1 && *time < best)) best = *time;  // the first one opens connections
    }
    WireWriter out;
    auto all = world_.network().allGather(out.put(best).take(), stepLimit);
    if (!all) return all.error();
    for (GroupSample& group : measured_.groups) {
      double slowest = 0;
      for (const Rank rank : group.ranks)
        slowest = std::max(slowest, WireReader((*all)[static_cast<std::size_t>(rank)]).get<double>());
      group.times.push_back(slowest);
    }
    return {};
  }

  static constexpr int mostConfirmations = 8;

  RankWorld& world_;
  const DoctorOptions& options_;
  validate::WaveQueue queue_;
  std::unique_ptr<collectives::HostCommunicator> group_;
  Measurements measured_;
};

}  // namespace

Result<Measurements> runDoctor(const DoctorOptions& options, Rank& rank) {
  auto world = joinWorld();
  if (!world) return world.error();
  rank = world->rank();
  auto queue = wavesOf(*world);
  if (!queue) return queue.error();
  auto measured = Doctor(*world, options, std::move(*queue)).run();
  // Nobody leaves while another is still reading.
  if (measured)
    if (auto done = world->network().barrier(stepLimit); !done) return done.error();
  return measured;
}

}  // namespace falcon::doctor
