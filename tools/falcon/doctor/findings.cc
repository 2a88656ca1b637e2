#include "doctor/findings.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "base/median.h"
#include "base/wire.h"
#include "diagnose/verdict.h"
#include "doctor/spread.h"

namespace falcon::doctor {
namespace {

using validate::CauseEvidence;
using validate::LinkMeasurement;
using validate::LinkStatus;

// In the order they travel.
constexpr double RankSample::*sampleFigures[] = {&RankSample::gigaflops32, &RankSample::gigaflops64,
                                                 &RankSample::memoryRate, &RankSample::loopbackRate};
constexpr double CauseEvidence::*evidenceFigures[] = {
    &CauseEvidence::throttled,  &CauseEvidence::waited,           &CauseEvidence::stolen, &CauseEvidence::ran,
    &CauseEvidence::processors, &CauseEvidence::thermalThrottles, &CauseEvidence::power};

double medianKnown(std::vector<double> values) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  return median(values);
}

std::vector<RankSample> typicalOfAll(const Measurements& measured) {
  std::vector<RankSample> samples;
  for (std::size_t rank = 0; rank < measured.sites.size(); ++rank)
    samples.push_back(typicalOf(measured, static_cast<Rank>(rank)));
  return samples;
}

/// How many times slower than the median of all.
std::vector<double> slownessOf(const std::vector<double>& figures) {
  const double usual = medianKnown(figures);
  std::vector<double> slowness;
  for (const double figure : figures) slowness.push_back(usual / figure);
  return slowness;
}

diagnose::Judgement judgeFigures(const std::vector<double>& figures, const std::vector<double>& throttled = {}) {
  diagnose::Measurements measured;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    diagnose::RankFigures rank{.rank = static_cast<Rank>(i), .score = figures[i]};
    if (i < throttled.size()) rank.throttledShare = throttled[i];
    measured.ranks.push_back(rank);
  }
  return diagnose::judgementOf(measured);
}

class Examination {
 public:
  explicit Examination(const Measurements& measured) : measured_(measured), samples_(typicalOfAll(measured)) {}

  Findings examine() {
    examineProcessors();
    examineRates(Subject::memory, column(&RankSample::memoryRate), "moves memory at");
    examineRates(Subject::loopback, column(&RankSample::loopbackRate), "sends to itself, over its own address, at");
    examineGpus();
    examineLinks();
    examineGroups();
    if (samples_.size() < 2) findings_.notes.emplace_back("one rank alone has no peers to be compared with");
    return std::move(findings_);
  }

 private:
  std::vector<double> column(double RankSample::*figure) const {
    std::vector<double> values;
    for (const RankSample& sample : samples_) values.push_back(sample.*figure);
    return values;
  }

  void examineProcessors() {
    std::vector<CauseEvidence> evidence;
    std::vector<double> throttled;
    const auto compute = slownessOf(column(&RankSample::gigaflops32));
    const auto memory = slownessOf(column(&RankSample::memoryRate));
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      evidence.push_back(samples_[i].evidence);
      evidence.back().computeSlowness = compute[i];
      evidence.back().memorySlowness = memory[i];
      throttled.push_back(evidence.back().throttled);
    }
    const CauseEvidence usual = validate::usualOf(evidence);
    std::map<Rank, Finding> slow;
    const auto take = [&](const char* precision, double RankSample::*figure) {
      const auto judged = judgeFigures(column(figure), throttled);
      doubted_.insert(doubted_.end(), judged.doubted.begin(), judged.doubted.end());
      for (const diagnose::SlowRank& rank : judged.ranks) {
        Finding& finding = slow[rank.rank];
        if (rank.slowdown <= finding.slowdown) continue;
        const auto& sample = samples_[static_cast<std::size_t>(rank.rank)];
        const auto why = validate::diagnose(evidence[static_cast<std::size_t>(rank.rank)], usual);
        finding = {.subject = Subject::processor, .rank = rank.rank, .slowdown = rank.slowdown, .cause = why.cause};
        finding.text = fmt::format("rank {} computes {:.2f} times slower than its peers ({:.1f} GFLOP/s in {}): {}{}{}",
                                   rank.rank, rank.slowdown, sample.*figure, precision, nameOf(why.cause),
                                   why.evidence.empty() ? "" : ", ", why.evidence);
      }
    };
    take("f32", &RankSample::gigaflops32);
    take("f64", &RankSample::gigaflops64);
    for (auto& [rank, finding] : slow) findings_.slow.push_back(std::move(finding));
    for (const auto& rank : doubted_)
      findings_.notes.push_back(
          fmt::format("rank {} looks slow, not clearly enough to be named: {}", rank.rank, rank.evidence));
    if (usual.throttled > 0.1)
      findings_.notes.push_back(fmt::format(
          "the ranks' cgroups hold them back for {:.0f} % of the time: the quota is below what they could use",
          100 * std::min(1.0, usual.throttled)));
    if (usual.stolen > 0.1)
      findings_.notes.push_back(
          fmt::format("the hypervisor gives {:.0f} % of the processors' time to others", 100 * usual.stolen));
  }

  bool computesSlowly(Rank rank) const {
    return std::any_of(findings_.slow.begin(), findings_.slow.end(), [&](const Finding& finding) {
      return finding.subject == Subject::processor && finding.rank == rank;
    });
  }

  // A rank that computes slowly does all else slowly as well.
  void examineRates(Subject subject, const std::vector<double>& rates, const char* verb) {
    for (const auto& rank : judgeFigures(rates).ranks) {
      if (computesSlowly(rank.rank)) continue;
      findings_.slow.push_back(
          {.subject = subject,
           .rank = rank.rank,
           .slowdown = rank.slowdown,
           .cause = subject == Subject::memory ? validate::Cause::memory : validate::Cause::unexplained,
           .text = fmt::format("rank {} {} {:.2f} GB/s, {:.2f} times slower than its peers", rank.rank, verb,
                               rates[static_cast<std::size_t>(rank.rank)] / 1e9, rank.slowdown)});
    }
  }

  void examineGpus() {
    std::vector<validate::GpuSample> tested;
    std::vector<Rank> ranks;
    for (const GpuMeasurement& gpu : measured_.gpus) {
      if (!gpu.problem.empty()) {
        findings_.notes.push_back(fmt::format("rank {}'s GPU was not tested: {}", gpu.rank, gpu.problem));
        continue;
      }
      tested.push_back(gpu.sample);
      ranks.push_back(gpu.rank);
    }
    const auto judged = validate::judgeGpus(tested);
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const auto& score = tested[i].score;
      const std::string name = fmt::format("rank {}'s GPU ({} at {})", ranks[i], score.device, score.bus);
      if (judged[i].slow)
        findings_.slow.push_back({.subject = Subject::gpu,
                                  .rank = ranks[i],
                                  .slowdown = judged[i].slowdown,
                                  .cause = judged[i].cause,
                                  .text = fmt::format("{} is slow: {}", name, judged[i].evidence)});
      else if (!judged[i].evidence.empty())
        findings_.notes.push_back(fmt::format("{}: {}", name, judged[i].evidence));
    }
  }

  void examineLinks() {
    // Slow ranks explain what is slow at their ends.
    diagnose::Measurements measured;
    const auto single = slownessOf(column(&RankSample::gigaflops32));
    const auto twofold = slownessOf(column(&RankSample::gigaflops64));
    for (std::size_t i = 0; i < samples_.size(); ++i)
      measured.ranks.push_back({.rank = static_cast<Rank>(i), .score = 1 / std::fmax(single[i], twofold[i])});
    measured.links = measured_.links;
    const auto judged = diagnose::judgementOf(measured);
    for (const auto& link : judged.links)
      findings_.slow.push_back(
          {.subject = Subject::link,
           .link = link.link,
           .slowdown = link.slowdown,
           .text = fmt::format("link {} -> {} is slow: {}", link.link.from, link.link.to, link.evidence)});
    for (const Link& link : judged.silent)
      findings_.slow.push_back({.subject = Subject::link,
                                .link = link,
                                .slowdown = 0,
                                .text = fmt::format("link {} -> {} does not answer", link.from, link.to)});
    if (judged.links.empty())
      for (const std::string& remark : judged.remarks) findings_.notes.push_back(remark);
  }

  void examineGroups() {
    std::map<std::size_t, std::vector<const GroupSample*>> bySize;
    for (const GroupSample& group : measured_.groups) bySize[group.ranks.size()].push_back(&group);
    for (const auto& [size, groups] : bySize) {
      if (size < 2) continue;
      std::vector<double> rates;
      for (const GroupSample* group : groups) rates.push_back(1 / median(group->times));
      for (const auto& slow : judgeFigures(rates).ranks) {
        const GroupSample& group = *groups[static_cast<std::size_t>(slow.rank)];
        findings_.slow.push_back(
            {.subject = Subject::group,
             .group = group.name,
             .slowdown = slow.slowdown,
             .text = fmt::format("all-reduce under {} takes {:.2f} ms, {:.2f} times as long as under its peers",
                                 group.name, 1e3 * median(group.times), slow.slowdown)});
      }
    }
  }

  const Measurements& measured_;
  const std::vector<RankSample> samples_;
  std::vector<diagnose::SlowRank> doubted_;
  Findings findings_;
};

}  // namespace

std::string encode(const RankSample& sample) {
  WireWriter out;
  for (const auto figure : sampleFigures) out.put(sample.*figure);
  for (const auto figure : evidenceFigures) out.put(sample.evidence.*figure);
  return out.take();
}

Result<RankSample> decodeSample(std::string_view bytes) {
  WireReader in(bytes);
  RankSample sample;
  for (const auto figure : sampleFigures) sample.*figure = in.get<double>();
  for (const auto figure : evidenceFigures) sample.evidence.*figure = in.get<double>();
  if (!in.finished()) return Error::remote("{} bytes are no sample of a rank", bytes.size());
  return sample;
}

const char* nameOf(Subject subject) {
  switch (subject) {
    case Subject::processor:
      return "processor";
    case Subject::memory:
      return "memory";
    case Subject::loopback:
      return "loopback";
    case Subject::gpu:
      return "gpu";
    case Subject::link:
      return "link";
    case Subject::group:
      return "switch";
  }
  return "?";
}

RankSample typicalOf(const Measurements& measured, Rank rank) {
  RankSample typical;
  const auto take = [&](auto read, double& into) {
    std::vector<double> values;
    for (const auto& round : measured.rounds) values.push_back(read(round[static_cast<std::size_t>(rank)]));
    into = medianKnown(values);
  };
  for (const auto figure : sampleFigures) take([=](const RankSample& one) { return one.*figure; }, typical.*figure);
  for (const auto figure : evidenceFigures)
    take([=](const RankSample& one) { return one.evidence.*figure; }, typical.evidence.*figure);
  return typical;
}

std::string typeOf(const LinkMeasurement& link, const std::vector<validate::RankSite>& sites) {
  if (link.medium == transport::Medium::sharedMemory) return "shared memory";
  const auto nodeOf = [&](Rank rank) { return sites[static_cast<std::size_t>(rank)].node; };
  return nodeOf(link.link.from) == nodeOf(link.link.to) ? "sockets in a node" : "sockets between nodes";
}

std::vector<TypeSummary> summarize(const Measurements& measured) {
  std::map<std::string, std::map<Link, std::vector<double>>> types;
  for (const LinkMeasurement& link : measured.links)
    if (link.status == LinkStatus::measured)
      types[typeOf(link, measured.sites)][link.link].push_back(link.bytesPerSecond());
  std::vector<TypeSummary> summaries;
  for (const auto& [type, links] : types) {
    TypeSummary summary{.type = type, .links = static_cast<int>(links.size())};
    std::vector<double> rates, variations;
    for (const auto& [link, values] : links) {
      rates.push_back(median(values));
      if (values.size() > 1) variations.push_back(variation(values));
      if (summary.slowestRate != 0 && rates.back() >= summary.slowestRate) continue;
      summary.slowest = link;
      summary.slowestRate = rates.back();
    }
    summary.medianRate = median(rates);
    summary.variation = median(variations);
    summaries.push_back(summary);
  }
  return summaries;
}

Findings examine(const Measurements& measured) {
  return Examination(measured).examine();
}

}  // namespace falcon::doctor
