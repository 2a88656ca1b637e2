#include "validate/verdict.h"

#include <algorithm>

#include "base/format.h"
#include "validate/link_verdict.h"
#include "validate/rank_verdict.h"

namespace falcon::validate {
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
    append(verdict.evidence, nameOf(culprit) + ": " + link.evidence);
    if (bothWays) {
      verdict.confidence = std::min(verdict.confidence, back->confidence);
      verdict.evidence += "; back: " + back->evidence;
    }
  }
}

}  // namespace

Verdict judge(const VerdictInput& input) {
  const RankJudgement ranks = judgeProcessors(input);
  const LinkJudgement links = judgeLinks(input, ranks.namedAndSuspected());

  Verdict verdict;
  verdict.confidence = 1;
  for (const SlowRank& rank : ranks.slow) {
    const Culprit culprit{.kind = CulpritKind::rank, .rank = rank.rank};
    verdict.culprits.push_back(culprit);
    verdict.confidence = std::min(verdict.confidence, rank.confidence);
    append(verdict.evidence, nameOf(culprit) + ": " + rank.evidence);
  }
  addLinks(links.slow, verdict);
  if (!links.explainedAway.empty())
    append(verdict.evidence, "links " + list(links.explainedAway) + " look slow at the ends of slow ranks");
  if (!links.silent.empty()) append(verdict.evidence, "no answer on " + list(links.silent));
  verdict.certain = !verdict.culprits.empty();
  if (verdict.certain) return verdict;

  verdict.confidence = 0.5 * std::max(ranks.suspicion, links.suspicion);
  append(verdict.evidence, ranks.remark);
  append(verdict.evidence, links.remark);
  if (!links.toConfirm.empty())
    append(verdict.evidence, "links " + list(links.toConfirm) + " look slow, not clearly enough");
  if (verdict.evidence.empty())
    verdict.evidence = fmt::format("nobody stands out among {} ranks and {} link measurements", input.ranks.size(),
                                   input.links.size());
  return verdict;
}

std::set<Link> linksThatLookSlow(const VerdictInput& input) {
  return judgeLinks(input, judgeProcessors(input).namedAndSuspected()).lookSlow;
}

std::vector<WaveLink> linksToConfirm(const VerdictInput& input, const std::vector<Wave>& waves) {
  const auto doubtful = judgeLinks(input, judgeProcessors(input).namedAndSuspected()).toConfirm;
  std::vector<WaveLink> links;
  for (const Link& link : doubtful) {
    for (const Wave& wave : waves) {
      const auto found =
          std::find_if(wave.links.begin(), wave.links.end(), [&](const WaveLink& other) { return other.link == link; });
      if (found == wave.links.end()) continue;
      links.push_back(*found);
      break;
    }
  }
  return links;
}

}  // namespace falcon::validate
