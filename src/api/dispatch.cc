#include "api/dispatch.h"

#include <algorithm>

#include "api/queued_calls.h"
#include "control/vendor_events.h"

namespace falcon::api {
namespace {

Submission toSubmission(const PendingCall& pending) {
  return {pending.communicator->engine.get(),
          pending.call,
          pending.stream,
          pending.hostStream != nullptr,
          pending.settings ? &pending.settings->get() : nullptr,
          pending.settings ? pending.settings->labels().tag : 0};
}

bool isOfHost(const Submission& submission) {
  return submission.engine->kind() == EngineKind::host;
}

/// Calls of the vendor's engine before those of the host's: the one only enqueues, the other works until all is done.
/// Until this thread's next call. Kept from group to group; nothing that runs inside of one calls this again.
std::span<const Submission> submissionsOf(std::span<const PendingCall> calls) {
  thread_local std::vector<Submission> submissions;
  submissions.clear();
  for (const PendingCall& pending : calls) submissions.push_back(toSubmission(pending));
  const auto isVendors = [](const Submission& submission) { return !isOfHost(submission); };
  if (!std::is_partitioned(submissions.begin(), submissions.end(), isVendors))
    std::stable_partition(submissions.begin(), submissions.end(), isVendors);
  return submissions;
}

/// `work` with the engine of each kind and the calls that are for it, until one fails.
template <class Work>
Status forEachKind(std::span<const Submission> submissions, Work&& work) {
  const auto firstOfHost = std::find_if(submissions.begin(), submissions.end(), isOfHost);
  const auto vendors = static_cast<std::size_t>(firstOfHost - submissions.begin());
  for (const auto part : {submissions.first(vendors), submissions.subspan(vendors)}) {
    if (part.empty()) continue;
    if (const Status done = work(*part[0].engine, part); !done) return done;
  }
  return {};
}

Status execute(std::span<const PendingCall> calls) {
  if (calls.size() == 1) {
    const Submission submission = toSubmission(calls[0]);
    return submission.engine->run({&submission, 1});
  }
  return forEachKind(submissionsOf(calls),
                     [](Engine& engine, std::span<const Submission> part) { return engine.run(part); });
}

/// The number a call gets in its series, before it is counted as entered. The engine numbers its collectives.
std::uint64_t numberOf(const PendingCall& pending) {
  return isPointToPoint(pending.call.operation) ? pending.counts().next(pending.call)
                                                : pending.communicator->engine->nextCollective();
}

/// The same for the calls of a group, each of which is counted before the next one is asked for. The engine counts its
/// collectives when they run.
class Numbering {
 public:
  std::uint64_t next(const PendingCall& pending) {
    const std::uint64_t number = numberOf(pending);
    return isPointToPoint(pending.call.operation) ? number : number + countOf(*pending.communicator)++;
  }
  void clear() { counts_.clear(); }

 private:
  std::uint64_t& countOf(const ncclComm& communicator) {
    for (auto& [known, count] : counts_)
      if (known == &communicator) return count;
    return counts_.emplace_back(&communicator, 0).second;
  }
  std::vector<std::pair<const ncclComm*, std::uint64_t>> counts_;
};

void enterLog(LoggedCall& logged, const PendingCall& pending, std::uint64_t number, Nanoseconds enter, bool grouped) {
  const ncclComm& communicator = *pending.communicator;
  CallRecorder* const recorder = communicator.hooks.calls;
  if (!recorder) return;
  const Engine& engine = *communicator.engine;
  logged.record = CallRecord::of(pending.call, engine.id(), engine.rank(), number, grouped, enter);
  logged.enter(CallingThread::own(), *recorder, communicator.place,
               pending.settings ? &pending.settings->labels() : nullptr);
}

/// Calls of the host's engine, and those of which Falcon knows nothing, are nobody's.
CommunicatorId vendorsNameOf(const ncclComm& communicator) {
  const bool named = communicator.watched && communicator.engine->kind() == EngineKind::vendor;
  return named ? communicator.engine->id() : 0;
}

Status runWatched(const PendingCall& pending) {
  WatchedCall watched(pending);
  Status done = execute({&pending, 1});
  if (done) watched.leave();
  return done;
}

/// What runWatched() needs for a group; its memory is kept from group to group of a thread, as that of submissionsOf().
struct WatchedGroup {
  Numbering numbering;
  std::vector<std::uint64_t> numbers;
  std::vector<LoggedCall> logged;

  static WatchedGroup& ofThisThread() {
    thread_local WatchedGroup group;
    return group;
  }
  void clear() {
    numbering.clear();
    numbers.clear();
    logged.clear();
  }
};

Status runWatched(std::span<const PendingCall> calls) {
  if (calls.size() == 1) return runWatched(calls[0]);
  CounterClock<>& clock = calls[0].communicator->clock;
  const Nanoseconds enter = clock.now();
  WatchedGroup& group = WatchedGroup::ofThisThread();
  HoldPoint* hold = nullptr;  // one process has one
  EnteredCalls<PendingCall> entered(calls);
  const struct Cleared {
    WatchedGroup& group;
    ~Cleared() { group.clear(); }
  } cleared{group};
  for (const PendingCall& pending : calls) {
    if (pending.communicator->hooks.hold) hold = pending.communicator->hooks.hold;
    group.numbers.push_back(group.numbering.next(pending));
    entered.enterNext();
  }
  if (hold) hold->passEvent(entered);
  for (size_t i = 0; i < calls.size(); ++i)
    enterLog(group.logged.emplace_back(), calls[i], group.numbers[i], enter, true);
  std::optional<PendingHanded> handed;
  if (control::VendorEvents* const events = control::VendorEvents::asked())
    handed.emplace(*events, calls, group.numbers, enter);
  const Status done = execute(calls);
  const Nanoseconds leave = clock.now();
  if (done) {
    entered.leave();
    for (LoggedCall& call : group.logged) call.leave(leave);
  }
  if (hold) hold->leaveCall();
  return done;
}

}  // namespace

PendingHanded::PendingHanded(control::VendorEvents& events, std::span<const PendingCall> calls,
                             std::span<const std::uint64_t> numbers, Nanoseconds now)
    : calls_(calls), numbers_(numbers) {
  areHanded();
  // All that are watched are of one job.
  const auto watched = std::find_if(calls.begin(), calls.end(),
                                    [](const PendingCall& pending) { return pending.communicator->watched; });
  if (watched != calls.end()) events.beforeCalls(watched->communicator->hooks.transfers, now);
}

std::optional<control::HandedCalls::Named> PendingHanded::find(const control::ToldCall& told) {
  told_.resize(calls_.size());
  const auto factsOf = [this](int at) {
    const auto place = static_cast<std::size_t>(at);
    const ncclComm& communicator = *calls_[place].communicator;
    return control::HandedCall::of(calls_[place].call, vendorsNameOf(communicator), communicator.engine->rank(),
                                   communicator.engine->size(), told_[place]);
  };
  const int count = static_cast<int>(calls_.size());
  const int found = control::placeOf(told, count, next_, false, factsOf);
  if (found < 0) return std::nullopt;
  const auto place = static_cast<std::size_t>(found);
  told_[place] = true;
  next_ = (found + 1) % count;
  return Named{calls_[place].communicator->engine->id(), numbers_[place]};
}

WatchedCall::WatchedCall(const PendingCall& pending)
    : clock_(pending.communicator->clock),
      hold_(pending.communicator->hooks.hold),
      enteredAt_(clock_.now()),
      number_(numberOf(pending)),
      entered_({&pending, 1}) {
  entered_.enter();
  if (hold_) hold_->passEvent(entered_);
  enterLog(logged_, pending, number_, enteredAt_, false);
  if (control::VendorEvents* const events = control::VendorEvents::asked()) [[unlikely]]
    handed_.emplace(*events, std::span(&pending, 1), std::span(&number_, 1), enteredAt_);
}

void WatchedCall::leave() {
  entered_.leave();
  logged_.leave(clock_.now());
}

Status checkCalls(std::span<const PendingCall> calls) {
  return forEachKind(submissionsOf(calls),
                     [](Engine& engine, std::span<const Submission> part) { return engine.check(part); });
}

Status runCalls(std::span<const PendingCall> calls) {
  for (const PendingCall& pending : calls) awaitQueued(*pending.communicator);
  return runNow(calls);
}

Status runPlain(ncclComm& communicator, const Call& call) {
  awaitQueued(communicator);
  return communicator.engine->run(call);
}

Status runNow(std::span<const PendingCall> calls) {
  if (calls.empty()) return {};
  bool watched = false;
  for (const PendingCall& pending : calls) watched = watched || pending.communicator->watched;
  if (watched) [[unlikely]]
    return runWatched(calls);
  return execute(calls);
}

Result<float> estimateCalls(std::span<const PendingCall> calls) {
  double longest = 0;
  const Status told =
      forEachKind(submissionsOf(calls), [&](Engine& engine, std::span<const Submission> part) -> Status {
        const auto time = engine.estimate(part);
        if (!time) return time.error();
        longest = std::max(longest, *time);
        return {};
      });
  if (!told) return told.error();
  return static_cast<float>(longest);
}

}  // namespace falcon::api
