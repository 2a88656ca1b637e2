// Who explains whom: the one table of it.
#pragma once

#include "diagnose/candidate.h"
#include "diagnose/observation.h"

namespace falcon::diagnose {

/// What a candidate that is slower by theta (a logarithm) does to an observation: its value then lies between
/// least * theta and most * theta + slack. All 0: nothing.
struct Reach {
  double least = 0;
  double most = 0;
  double slack = 0;
  /// The candidate is looked for where this is seen. What a candidate only excuses does not call for it: slow links do
  /// not make a rank slow.
  bool calls = true;
  bool isNone() const { return most <= 0; }
  /// It has to be seen there: a healthy figure speaks for the candidate.
  bool isMust() const { return least > 0; }
};

/// | candidate | own time | compute test, GPU, kernel   | link test                  | time under way              |
/// |-----------|----------|-----------------------------|----------------------------|-----------------------------|
/// | rank      | must, a  | may: the cause may lie      | excused, twice as much: at | excused                     |
/// |           | third    | outside of its processor    | an end that stands still   |                             |
/// | link      | none     | none                        | must                       | must, half of it: it has    |
/// |           |          |                             |                            | the waiting of others in it |
/// | interface | none     | none                        | must, what goes over it    | likewise                    |
///
/// Before any test, by what profiling saw:
///
/// | candidate | time blocked of a link             | time of a group                     |
/// |-----------|------------------------------------|-------------------------------------|
/// | rank      | excused at an end; however much,   | excused where it is a member;       |
/// |           | where it has the whole delay       | however much, where it has it all   |
/// | link      | must; of others in its group, and  | excused where both ends are         |
/// |           | in larger ones around it, excused  | members, of no smaller group        |
/// | group     | none                               | must; excused of larger ones around |
///
/// A rank's own time has more in it than what a slow processor slows. For the waiting of others in it, a longer time
/// under way needs no explanation by itself; one that is not longer speaks for its link. A slow link stalls its whole
/// ring; where all meet, the delay of some shows; and a rank that is slower by the whole delay stands still inside of
/// calls, too.
Reach reachOf(const Candidate& candidate, const Observation& observation);

}  // namespace falcon::diagnose
