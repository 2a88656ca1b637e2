// Words for calls, members and durations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "diagnose/hang_analysis.h"
#include "diagnose/job_members.h"

namespace falcon::diagnose {

/// "AllReduce #12 of 100 x float".
std::string textOf(const CallRecord& call);
/// The same with the reduction or the root, where there is one.
std::string askedText(const CallRecord& call);
/// "12.3 s", "4 min 10 s".
std::string textOf(Nanoseconds duration);
/// "rank 3", "ranks 1, 4, 5"; long lists are cut.
std::string namesOf(const std::vector<MemberName>& members);
/// ", in range step > data loading for 12.3 s": of the application's ranges that are open on that thread, the innermost
/// of which is so old. Where it has none, those of the main thread, on whose behalf it may be called; "" without any.
std::string rangeText(const instrument::RankSnapshot& rank, std::uint32_t thread);
/// "1 other waits", "7 others wait".
std::string othersWait(std::size_t number);

/// Words that need to know the job's communicators.
class HangWords {
 public:
  explicit HangWords(std::span<const JobCommunicator> communicators) : communicators_(communicators) {}
  /// The call, with the names of its peer and its communicator.
  std::string describe(const CallRecord& call) const;
  /// "ncclCommInitRank of 4 ranks (dp)", "ncclCommSplit (tp) of whole job".
  std::string describe(const instrument::MakingView& making) const;
  /// What a member does that others wait for; "" where nothing is known of it.
  std::string excuseOf(const Member& member) const;
  /// `inFlight`: its calls, oldest first.
  std::string whereIs(const instrument::RankSnapshot& rank, const std::vector<CallRecord>& inFlight) const;

 private:
  std::string outsideText(const instrument::RankSnapshot& rank) const;

  std::span<const JobCommunicator> communicators_;
};

}  // namespace falcon::diagnose
