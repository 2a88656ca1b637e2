// One account of all evidence: the fewest candidates that explain what was observed. Pure.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "diagnose/candidate.h"
#include "diagnose/observation.h"
#include "diagnose/thresholds.h"

namespace falcon::diagnose {

/// A candidate of the account, by how much it is slower, and what speaks for it.
struct Explanation {
  Candidate candidate;
  double theta = 0;      ///< logarithm of how many times slower
  double deviation = 0;  ///< of theta
  double gain = 0;       ///< cost that the account would have more without it
  int sources = 0;       ///< that agree; see Source
  bool settled = true;   ///< all that it must show in was seen often enough
  /// Least slowdown that one of the sources may be believed for by itself.
  double aloneFrom = std::numeric_limits<double>::infinity();
  bool isNamed = false;  ///< beyond doubt, by the thresholds
  /// 0 to 1: how near it comes to being named; 1 and more: it is.
  double margin = 0;
};

struct Account {
  std::vector<Explanation> explanations;  ///< what is named first, then by gain
  /// More explanations than may be at a time would be needed: nobody is to be named then.
  bool tooMany = false;
  double cost = 0;  ///< that is left
};

/// Every observation costs the square of what nobody explains of it, in standard deviations, up to a limit; every
/// explanation has a price, which the observations that call for it have to pay. Several explanations of one
/// observation combine by the maximum: ranks of a synchronous job wait for the slowest. The best candidate is added,
/// all are fitted again, who no longer pays is dropped, and pairs are tried, since of two equal culprits each alone
/// explains little; until nothing pays.
///
/// (To take what explains most and subtract it would fail: supersets always explain most, and of two equal culprits
/// leave-one-out acquits both.)
///
/// @param observations  in any order
/// @param candidates    in any order; those that reach no observation are never explanations
Account accountOf(std::span<const Observation> observations, std::span<const Candidate> candidates,
                  const Thresholds& thresholds = {});

}  // namespace falcon::diagnose
