#include "diagnose/verdict.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/format.h"
#include "diagnose/link_evidence.h"
#include "diagnose/rank_evidence.h"
#include "diagnose/reach.h"

namespace falcon::diagnose {
namespace {

void append(std::string& text, const std::string& part) {
  if (part.empty()) return;
  text += (text.empty() ? "" : "; ") + part;
}

std::string list(const std::vector<Link>& links) {
  std::string text;
  for (const Link& link : links) text += fmt::format("{}{} -> {}", text.empty() ? "" : ", ", link.from, link.to);
  return text;
}

double confidenceFor(double margin) {
  return 1 - 0.1 * std::exp(-3 * (std::max(margin, 1.0) - 1));
}

std::vector<Candidate> candidatesAmong(const std::vector<RankFigures>& ranks) {
  std::vector<Candidate> candidates;
  for (const RankFigures& rank : ranks) candidates.push_back({.kind = CandidateKind::rank, .rank = rank.rank});
  return candidates;
}

class Judge {
 public:
  Judge(const Measurements& measured, const Thresholds& thresholds)
      : thresholds_(thresholds),
        ranks_(measured.ranks, measured.gpus, thresholds),
        links_(measured, slowRanks(measured), thresholds) {
    observations_ = ranks_.observations();
    observations_.insert(observations_.end(), links_.observations().begin(), links_.observations().end());
    std::vector<Candidate> candidates = candidatesAmong(measured.ranks);
    for (Candidate& candidate : links_.candidates()) candidates.push_back(std::move(candidate));
    account_ = accountOf(observations_, candidates, thresholds);
    for (const Observation& each : links_.observations())
      if (each.quantity == Quantity::linkTest) tested_.push_back(each);
  }

  Judgement judge() {
    Judgement judgement{
        .silent = links_.silent(), .lookSlow = links_.lookSlow(), .observations = std::move(observations_)};
    for (const Explanation& explanation : account_.explanations) {
      if (explanation.candidate.kind == CandidateKind::rank)
        add(explanation, judgement.ranks);
      else
        addLinks(explanation, judgement);
      if (explanation.candidate.accusable && !explanation.isNamed)
        judgement.suspicion = std::max(judgement.suspicion, std::min(1.0, explanation.margin));
    }
    refuseMost(judgement);
    addOppositeDirections(judgement);
    const auto byRank = [](const auto& one, const auto& other) { return one.rank < other.rank; };
    const auto byLink = [](const auto& one, const auto& other) { return one.link < other.link; };
    std::sort(judgement.ranks.begin(), judgement.ranks.end(), byRank);
    std::sort(judgement.links.begin(), judgement.links.end(), byLink);
    doubt(judgement);
    ask(judgement);
    remark(judgement);
    return judgement;
  }

 private:
  /// By the ranks' own figures; links do not make a rank slow.
  std::set<Rank> slowRanks(const Measurements& measured) const {
    std::set<Rank> slow;
    for (const auto& [rank, slowness] : ranks_.lookSlow()) slow.insert(rank);
    const Account account = accountOf(ranks_.observations(), candidatesAmong(measured.ranks), thresholds_);
    for (const Explanation& explanation : account.explanations) slow.insert(explanation.candidate.rank);
    return slow;
  }

  void add(const Explanation& explanation, std::vector<SlowRank>& named) const {
    if (!explanation.isNamed) return;
    named.push_back({explanation.candidate.rank, std::exp(explanation.theta), confidenceFor(explanation.margin),
                     ranks_.textOf(explanation.candidate.rank, true)});
  }

  /// By itself, so that it may be named for it.
  bool agrees(const Observation& test, const Explanation& explanation) const {
    return test.value >= thresholds_.agreeingPart * explanation.theta &&
           test.value - thresholds_.boundDeviations * test.sigma >= thresholds_.leastBound;
  }

  /// Of an interface, the links over it that somebody waits for.
  void addLinks(const Explanation& explanation, Judgement& judgement) const {
    if (!explanation.isNamed) return;
    std::vector<const Observation*> carried;
    std::size_t slow = 0;
    for (const Observation& test : tested_) {
      if (reachOf(explanation.candidate, test).isNone()) continue;
      carried.push_back(&test);
      slow += agrees(test, explanation);
    }
    for (const Observation* test : carried) {
      if (!agrees(*test, explanation) || !links_.isAccusable(test->link)) continue;
      if (isNamed(judgement.links, test->link)) continue;
      std::string evidence = links_.textOf(test->link);
      if (explanation.candidate.kind != CandidateKind::link && slow > 1)
        evidence +=
            fmt::format("; {} of {} links are slow over {}", slow, carried.size(), nameOf(explanation.candidate));
      judgement.links.push_back(
          {test->link, std::exp(test->value), confidenceFor(explanation.margin), std::move(evidence)});
    }
  }

  static bool isNamed(const std::vector<SlowLink>& named, const Link& link) {
    return std::any_of(named.begin(), named.end(), [&](const SlowLink& each) { return each.link == link; });
  }

  /// What is slow one way is often slow the other way, too, where the job may send nothing that would show it: then the
  /// direction that is named and holds up the job is the second source for one that is about as slow. Not where links
  /// may always have been so.
  bool isBackOfNamed(const Observation& test, const Judgement& judgement) const {
    if (std::isinf(test.aloneFrom) || isNamed(judgement.links, test.link)) return false;
    const Link thereLink{test.link.to, test.link.from};
    return std::any_of(judgement.links.begin(), judgement.links.end(), [&](const SlowLink& there) {
      return there.link == thereLink && links_.holdsUp(thereLink) &&
             test.value >= thresholds_.agreeingPart * std::log(there.slowdown);
    });
  }

  void addOppositeDirections(Judgement& judgement) const {
    std::vector<SlowLink> found;
    for (const Observation& back : tested_) {
      if (!back.settled || !isBackOfNamed(back, judgement)) continue;
      const double needed = std::max(thresholds_.leastOfLink, std::sqrt(thresholds_.gain) * back.sigma);
      const double slower = back.value - explainedByRanks(back);
      if (slower >= needed)
        found.push_back({back.link, std::exp(back.value), confidenceFor(slower / needed), links_.textOf(back.link)});
    }
    judgement.links.insert(judgement.links.end(), found.begin(), found.end());
  }

  void refuseMost(Judgement& judgement) const {
    std::map<transport::Medium, std::size_t> named;
    for (const SlowLink& each : judgement.links) ++named[links_.mediumOf(each.link)];
    for (const auto& [medium, count] : named) {
      const auto ofMedium = [&, kind = medium](const SlowLink& each) { return links_.mediumOf(each.link) == kind; };
      const auto any = std::find_if(judgement.links.begin(), judgement.links.end(), ofMedium);
      const std::size_t all = links_.peersOf(any->link);
      if (2 * count <= all) continue;
      judgement.remarks.push_back(fmt::format("{} of {} links look slow, too many to accuse one", count, all));
      std::erase_if(judgement.links, ofMedium);
    }
  }

  static bool isNamed(const std::vector<SlowRank>& named, Rank rank) {
    return std::any_of(named.begin(), named.end(), [&](const SlowRank& each) { return each.rank == rank; });
  }

  void doubt(Judgement& judgement) const {
    std::map<Rank, double> doubted = ranks_.lookSlow();
    for (const Explanation& explanation : account_.explanations)
      if (explanation.candidate.kind == CandidateKind::rank)
        doubted[explanation.candidate.rank] = std::max(doubted[explanation.candidate.rank], explanation.theta);
    for (const auto& [rank, slowness] : doubted)
      if (!isNamed(judgement.ranks, rank))
        judgement.doubted.push_back({rank, std::exp(slowness), 0, ranks_.textOf(rank, false)});
  }

  /// What slow ranks explain of a link's test.
  double explainedByRanks(const Observation& test) const {
    double explained = 0;
    for (const Explanation& explanation : account_.explanations) {
      if (explanation.candidate.kind != CandidateKind::rank) continue;
      if (const Reach reach = reachOf(explanation.candidate, test); !reach.isNone())
        explained = std::max(explained, reach.most * explanation.theta + reach.slack);
    }
    return explained;
  }

  /// It must show in this link, which was not measured often enough to tell.
  bool isAwaited(const Observation& test) const {
    return !test.settled &&
           std::any_of(account_.explanations.begin(), account_.explanations.end(), [&](const Explanation& each) {
             return each.candidate.accusable && each.margin >= 1 && reachOf(each.candidate, test).isMust();
           });
  }

  void ask(Judgement& judgement) const {
    std::vector<Link> opposite;
    for (const Observation& test : tested_) {
      const Link& link = test.link;
      if (isNamed(judgement.links, link)) continue;
      if (isBackOfNamed(test, judgement) && test.value - explainedByRanks(test) > thresholds_.leastBound &&
          links_.mayAskAgain(link))
        opposite.push_back(link);
      if (!links_.isAccusable(link)) continue;
      const double explained = explainedByRanks(test);
      if (links_.mayBeSlow(link, explained) || isAwaited(test)) {
        if (links_.mayAskAgain(link)) judgement.toConfirm.push_back(link);
      } else if (explained > 0 && links_.looksSlow(link, 0)) {
        judgement.explainedAway.push_back(link);
      }
    }
    if (judgement.toConfirm.empty()) judgement.toConfirm = std::move(opposite);
  }

  void remark(Judgement& judgement) const {
    if (!judgement.ranks.empty() || !judgement.links.empty()) return;
    if (account_.tooMany)
      judgement.remarks.push_back(
          fmt::format("more than {} ranks and links would have to be slow at a time", thresholds_.mostExplanations));
    const auto most =
        std::max_element(judgement.doubted.begin(), judgement.doubted.end(),
                         [](const auto& one, const auto& other) { return one.slowdown < other.slowdown; });
    if (most != judgement.doubted.end())
      judgement.remarks.push_back(fmt::format("rank {} is not named: {}", most->rank, most->evidence));
    if (!links_.remark().empty()) judgement.remarks.push_back(links_.remark());
    if (judgement.remarks.empty() || links_.remark().empty())
      if (const std::string slowest = links_.slowest(); !slowest.empty()) judgement.remarks.push_back(slowest);
  }

  const Thresholds& thresholds_;
  const RankEvidence ranks_;
  const LinkEvidence links_;
  std::vector<Observation> observations_;
  std::vector<Observation> tested_;  ///< of links
  Account account_;
};

/// For an event: of very many, those that say most.
std::vector<Observed> observedIn(std::vector<Observation> observations) {
  constexpr std::size_t most = 256;
  if (observations.size() > most) {
    const auto says = [](const Observation& each) { return each.value / each.sigma; };
    std::nth_element(observations.begin(), observations.begin() + most, observations.end(),
                     [&](const auto& one, const auto& other) { return says(one) > says(other); });
    observations.resize(most);
  }
  std::vector<Observed> observed;
  for (const Observation& each : observations)
    observed.push_back({nameOf(each.quantity), each.rank, each.link, std::exp(each.value), each.sigma});
  return observed;
}

/// Opposite directions become one culprit, named by its smaller rank first.
void addLinks(const std::vector<SlowLink>& slow, Verdict& verdict) {
  const auto find = [&](const Link& link) {
    return std::find_if(slow.begin(), slow.end(), [&](const SlowLink& other) { return other.link == link; });
  };
  for (const SlowLink& link : slow) {
    const auto back = find({link.link.to, link.link.from});
    const bool bothWays = back != slow.end();
    if (bothWays && link.link.to < link.link.from) continue;  // said by the other direction
    const Culprit culprit{.kind = CulpritKind::link, .link = link.link, .bothWays = bothWays};
    verdict.culprits.push_back(culprit);
    verdict.confidence = std::min(verdict.confidence, link.confidence);
    std::string evidence = link.evidence;
    if (bothWays) {
      verdict.confidence = std::min(verdict.confidence, back->confidence);
      evidence += "; back: " + back->evidence;
    }
    append(verdict.evidence, nameOf(culprit) + ": " + evidence);
    verdict.evidenceOf[culprit] = std::move(evidence);
  }
}

}  // namespace

Judgement judgementOf(const Measurements& measured, const Thresholds& thresholds) {
  return Judge(measured, thresholds).judge();
}

Verdict verdictOf(const Judgement& judgement, const Measurements& measured) {
  Verdict verdict;
  verdict.confidence = 1;
  verdict.observed = observedIn(judgement.observations);
  for (const SlowRank& rank : judgement.ranks) {
    const Culprit culprit{.kind = CulpritKind::rank, .rank = rank.rank};
    verdict.culprits.push_back(culprit);
    verdict.confidence = std::min(verdict.confidence, rank.confidence);
    append(verdict.evidence, nameOf(culprit) + ": " + rank.evidence);
    verdict.evidenceOf[culprit] = rank.evidence;
  }
  addLinks(judgement.links, verdict);
  std::string beside;
  if (!judgement.explainedAway.empty())
    append(beside, "links " + list(judgement.explainedAway) + " look slow at the ends of slow ranks");
  if (!judgement.silent.empty()) append(beside, "no answer on " + list(judgement.silent));
  append(verdict.evidence, beside);
  for (auto& [culprit, evidence] : verdict.evidenceOf) append(evidence, beside);
  verdict.certain = !verdict.culprits.empty();
  if (verdict.certain) return verdict;

  verdict.confidence = 0.5 * judgement.suspicion;
  for (const std::string& remark : judgement.remarks) append(verdict.evidence, remark);
  if (!judgement.toConfirm.empty())
    append(verdict.evidence, "links " + list(judgement.toConfirm) + " look slow, not clearly enough");
  if (verdict.evidence.empty())
    verdict.evidence = fmt::format("nobody stands out among {} ranks and {} link measurements", measured.ranks.size(),
                                   measured.links.size());
  return verdict;
}

std::vector<validate::WaveLink> linksToConfirm(const Measurements& measured, const std::vector<validate::Wave>& waves) {
  std::vector<validate::WaveLink> links;
  for (const Link& link : judgementOf(measured).toConfirm) {
    for (const validate::Wave& wave : waves) {
      const auto found = std::find_if(wave.links.begin(), wave.links.end(),
                                      [&](const validate::WaveLink& other) { return other.link == link; });
      if (found == wave.links.end()) continue;
      links.push_back(*found);
      break;
    }
  }
  return links;
}

}  // namespace falcon::diagnose
