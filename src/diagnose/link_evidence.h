// What measurements of links say as observations, and as a sentence. Pure.
#pragma once

#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "diagnose/candidate.h"
#include "diagnose/measurements.h"
#include "diagnose/observation.h"
#include "diagnose/thresholds.h"

namespace falcon::diagnose {

/// Links are compared with the median of their medium, and with their own healthy rate where it is known: links that
/// always were slower are not accused. Fewer than three comparable ones: only the own healthy rate counts. What
/// happened to all links alike is not a link's fault, so where three are known, growths count beyond the middle one.
/// Links at the ends of slow ranks do not count as peers.
///
/// Two replicas of a pipeline have four links, of which a slow one has two. So where a medium falls into two halves far
/// apart, the faster half is what is healthy. It may have been so ever since: then a test alone accuses nobody.
///
/// On one machine unshaped links scatter by 2-4 times because the scheduler is measured, and now and then by 16. A link
/// is settled once it was measured three times while no core was missing; then the middle one counts. Until then the
/// best one does, since a lost core only ever makes a measurement slower; and no link is named by its tests alone for
/// more than the best one says. The scatter is these links' own where eight degrees of freedom tell that it is less
/// than what is usual.
///
/// Where profiling saw a link's bytes take a fifth or more of what iterations became longer by, that is a second
/// source. In shared memory a link whose bytes move for less than a hundredth of it is none that anybody waits for (a
/// process that loses its core for a moment makes 6 GB/s of 20, which no iteration of a second would feel).
class LinkEvidence {
 public:
  /// @param slowRanks  at whose ends links look slow for another reason
  LinkEvidence(const Measurements& measured, const std::set<Rank>& slowRanks, const Thresholds& thresholds);

  const std::vector<Observation>& observations() const { return observations_; }
  /// Every link that was measured; and every network interface that two or more of them leave, or come in at.
  std::vector<Candidate> candidates() const;

  /// "12.0 MB/s against a median of ...; in the job its bytes were under way for ...".
  std::string textOf(const Link& link) const;
  /// Links that look slow, whatever the account makes of it: what they give now is not their healthy rate.
  std::set<Link> lookSlow() const;
  /// It looks slow beyond what others explain of it (a logarithm).
  bool looksSlow(const Link& link, double explained) const;
  /// It may be slow: less than that, where it holds up the job.
  bool mayBeSlow(const Link& link, double explained) const;
  /// More measurements may help.
  bool mayAskAgain(const Link& link) const;
  /// Never answered, or broke: nothing is said about their speed.
  const std::vector<Link>& silent() const { return silent_; }
  /// Profiling saw its bytes take a part of what iterations became longer by.
  bool holdsUp(const Link& link) const;
  bool isAccusable(const Link& link) const { return !measured_.use.onlyCompared.contains(link); }
  /// Links over the medium of this one, that were measured.
  std::size_t peersOf(const Link& link) const;
  transport::Medium mediumOf(const Link& link) const;
  /// About links that could not be compared; may be empty.
  const std::string& remark() const { return remark_; }
  /// The slowest link that somebody may wait for, and what is known of it; empty: no link is slower.
  std::string slowest() const;

 private:
  /// One link with all its measurements.
  struct Measured {
    transport::Medium medium = transport::Medium::socket;
    int count = 0;                     ///< measurements that can accuse it
    int asked = 0;                     ///< times, answered or not
    std::vector<double> each{};        ///< logarithms of their seconds per byte
    double best = infinitelySlow;      ///< of them; logarithm of seconds per byte
    double slowness = infinitelySlow;  ///< the middle one where it is settled, else the best
    double ownExcess = unknown;        ///< the same above its own healthy time
    double value = unknown;            ///< above its peers, or its own history
    double sigma = 1;                  ///< of `value`
    double scatter = 1;                ///< of one measurement
    bool holdsUp = false;
    /// Chosen by nothing: those that looked slow are measured again, and then no longer do by chance.
    double first() const { return each.empty() ? best : each.front(); }
    bool isAnswered() const { return slowness < infinitelySlow; }
  };
  struct Medium {
    std::vector<Link> links;
    std::size_t peers = 0;
    double centre = unknown;
    bool halved = false;  ///< half of them are far slower than the other half
  };

  void collect();
  void compare(transport::Medium kind, const std::set<Rank>& slowRanks);
  double ownScatterOf(const Medium& medium, const std::vector<double>& slowness) const;
  void observe();

  const Measurements& measured_;
  const Thresholds thresholds_;
  std::map<Link, Measured> links_;
  std::map<transport::Medium, Medium> media_;
  std::vector<Link> silent_;
  std::vector<Observation> observations_;
  std::string remark_;
};

}  // namespace falcon::diagnose
