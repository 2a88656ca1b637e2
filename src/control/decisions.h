// From what the controller has recorded to what instrument and rebalance decide on: pure glue, no state.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/event.h"
#include "control/job_view.h"
#include "diagnose/host_slowness.h"
#include "diagnose/suspicion.h"
#include "instrument/communicator_names.h"
#include "rebalance/planner.h"
#include "rebalance/ski_rental.h"

namespace falcon::control {

/// What timing saw of one rank, an iteration and by connection: a slow link slows all of its channels.
std::vector<instrument::TransferProfile> perIteration(const TransferView& transfers);
/// Every member's newest `window` iterations beside its healthy baseline. Own times are given at the baseline's number
/// of micro-batches, so that a split of ours makes nobody look slow or fast.
std::vector<instrument::RankComparison> comparisonsOf(const JobView& job, std::size_t window);
/// What the communicators are called in events.
instrument::CommunicatorNames communicatorNames(const JobView& job);
/// Their members, with these names.
std::vector<instrument::CommunicatorMembers> communicatorMembers(const JobView& job);
/// What the newest `window` iterations say of everybody.
/// @param known  are not suspected again, nor what they may explain; who shares a link's addresses shares the link
diagnose::SeenInProfile seenInProfile(const JobView& job, std::size_t window, std::span<const Culprit> known = {});
/// The suspects, for an event.
std::vector<Suspect> suspectsOf(const diagnose::Suspicion& suspicion, const JobView& job);

/// Calls of the vendor's end when they have launched: iterations as they come do not tell their rank's own time, and
/// the last profile does, which has the calls as the device went through them. alsoInProfile: for what is decided right
/// after a profile.
enum class OwnTime { inSamples, alsoInProfile };
/// How much more slowly than in its baseline a rank computes (per micro-batch); nothing where one of both is unknown.
std::optional<double> ownTimeGrowth(const MemberView& member, std::size_t window, OwnTime known = OwnTime::inSamples);
/// The same of the member in the middle of the job: what a busy machine does to all alike; 1 where nothing is known.
double usualGrowth(const JobView& job, std::size_t window, OwnTime known = OwnTime::inSamples);
/// The job's ranks of every host whose members tell of their processors, over their newest `window` iterations.
std::vector<diagnose::HostObservation> hostObservations(const JobView& job, std::size_t window);
/// How much longer iterations take than in the baseline, of the rank in the middle; 1 where nothing is known.
double iterationGrowth(const JobView& job, std::size_t window);
/// Seconds that an iteration takes longer than in the baseline, of the rank where that is most; NaN: no baseline.
double delayOf(const JobView& job, std::size_t window);
/// What the own time grew by beyond the usual growth, over that delay, right after a profile; nothing where either is
/// unknown or no delay.
/// @param delay  delayOf()
/// @param usual  usualGrowth()
std::optional<double> shareOfDelay(const MemberView& member, std::size_t window, double delay, double usual);

/// The application's ranges that take longer than in their rank's healthy baseline, the most first; at most eight.
std::vector<RangeGrowth> rangeGrowths(const JobView& job, std::size_t window);

/// What a restart takes: as the last one did, else as is expected, and a checkpoint to be written before; nothing where
/// not every process's framework asks whether one is wanted.
std::optional<double> restartSecondsOf(const JobView& job);
/// Whether checkpoints are kept in a folder on each host: then a rank finds its part only where it was written, with
/// the role that it had.
bool hasFoldersOfHosts(const JobView& job);

/// What the planner decides from. Rings and splits can be changed only where everybody concerned runs Falcon.
/// @param known  differ from others by more than chance
rebalance::JobFacts jobFactsOf(const JobView& job, std::size_t window, bool deterministic,
                               std::span<const Culprit> known = {});

/// The strategy that a plan carries out or advises.
rebalance::Strategy strategyOf(const rebalance::Plan& plan);
/// What the plan costs, as far as is known; what is only advised costs what is usual.
double priceOf(const rebalance::Plan& plan, double healthyIterationSeconds, const rebalance::Prices& prices = {});
/// The loss has reached the plan's price.
bool isDue(const rebalance::Plan& plan, double lossSeconds, double healthyIterationSeconds);

/// The same rank, or the same pair of ranks, whichever directions of it.
bool isSameCulprit(const Culprit& one, const Culprit& other);

/// Rank of the communicator that a job rank has; nothing when it is no member.
std::optional<Rank> communicatorRank(const CommunicatorFormed& communicator, Rank jobRank);

}  // namespace falcon::control
