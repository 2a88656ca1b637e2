#include "api/group.h"

#include <algorithm>
#include <memory>

#include "api/background.h"
#include "api/queued_calls.h"
#include "api/setup_jobs.h"
#include "base/log.h"

namespace falcon::api {

namespace {

/// Of the vendor's library, around what has been passed on in a group of ours; none where there is no library.
class VendorsGroup {
 public:
  explicit VendorsGroup(std::shared_ptr<const gpu::VendorLibrary> library) : library_(std::move(library)) {}
  ~VendorsGroup() { (void)end({}); }
  VendorsGroup(const VendorsGroup&) = delete;
  VendorsGroup& operator=(const VendorsGroup&) = delete;

  /// What was passed on runs. Gives `done`, or what went wrong then.
  Status end(Status done) {
    if (!library_) return done;
    const auto library = std::exchange(library_, nullptr);
    const Status ended = library->status(library->functions.groupEnd(), "ncclGroupEnd", nullptr);
    return done ? ended : done;
  }
  /// Nothing of it runs.
  void simulate() {
    if (!library_) return;
    const auto simulateEnd = library_->functions.groupSimulateEnd;
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    if (simulateEnd && simulateEnd(&info) == ncclSuccess) library_ = nullptr;
  }

 private:
  std::shared_ptr<const gpu::VendorLibrary> library_;
};

}  // namespace

constinit thread_local Group* Group::mine = nullptr;

Group& Group::make() {
  thread_local Group group;
  mine = &group;
  return group;
}

Status Group::noted(Status status) {
  if (!status && open() && !firstError_) firstError_ = status.error();
  return status;
}

Status Group::openVendors(std::shared_ptr<const gpu::VendorLibrary> library) {
  if (!open() || vendors_ || !library) return {};
  if (const Status begun = library->status(library->functions.groupStart(), "ncclGroupStart", nullptr); !begun)
    return noted(log::decided(begun.error()));
  vendors_ = std::move(library);
  return {};
}

Status Group::afterwards(std::function<Status()> work) {
  if (!open()) return work();
  afterwards_.push_back(std::move(work));
  return {};
}

Status Group::agreeOnBlocking(const char* function, bool blocking) {
  if (!blocking_) blocking_ = blocking;
  if (*blocking_ == blocking) return {};
  return log::decided(
      Error::invalidArgument("{}: a group has either blocking or nonblocking communicators, not both", function));
}

Status Group::submit(const char* function, CommunicatorUse communicator, const Call& call, void* stream,
                     CallSettings settings) {
  PendingCall pending{communicator.get(), call, stream};
  pending.settings = std::move(settings);
  if (stream) [[unlikely]] {
    auto hostStream = streamFor(function, *communicator, stream);
    if (!hostStream) return hostStream.error();
    pending.hostStream = std::move(*hostStream);
  }
  if (!open()) [[likely]] {
    if (communicator->settings.blocking && !pending.hostStream) [[likely]]
      return runCalls({&pending, 1});
    start();
    (void)noted(submit(function, std::move(communicator), call, stream, std::move(pending.settings)));
    return end();
  }
  if (const Status agreed = agreeOnBlocking(function, communicator->settings.blocking); !agreed) return agreed;
  makeOrdinary();
  calls_.push_back(std::move(pending));
  inUse_.push_back(std::move(communicator));
  return {};
}

Status Group::submit(OneSidedWork work) {
  const bool blocking = (*work.use)->settings.blocking;
  if (!open()) {
    if (blocking) return runOneSided({&work, 1});
    start();
    (void)noted(submit(std::move(work)));
    return end();
  }
  if (const Status agreed = agreeOnBlocking(work.function, blocking); !agreed) return agreed;
  const auto firstWait =
      std::find_if(oneSided_.begin(), oneSided_.end(), [](const auto& other) { return other.waits; });
  oneSided_.insert(work.waits ? oneSided_.end() : firstWait, std::move(work));
  return {};
}

Status Group::setUp(const char* function, SetupJob job) {
  const bool blocking = job.communicator->settings.blocking;
  const Status agreed = open() ? agreeOnBlocking(function, blocking) : Status();
  if (!agreed) {
    CommunicatorUse::release(*job.communicator);
    return agreed;
  }
  *job.output = nullptr;
  std::vector<SetupJob> single;
  auto& jobs = open() ? jobs_ : single;
  jobs.push_back(std::move(job));
  if (open()) return {};
  return runSetupJobs(std::move(jobs), blocking);
}

Status Group::end() {
  if (!open()) return log::decided(Error::invalidUsage("ncclGroupEnd without ncclGroupStart"));
  if (--depth_ > 0) return {};
  VendorsGroup vendors(std::exchange(vendors_, nullptr));
  if (isPlain()) return vendors.end(runPlainly());
  // The group is empty again whatever happens, exceptions included.
  Group ended = std::exchange(*this, Group());
  ended.makeOrdinary();
  // Communicators are made one after the other, which they are not inside of a group of the vendor's.
  const Status passedOn = ended.jobs_.empty() ? Status() : vendors.end({});
  Status done = vendors.end(ended.run());
  if (done && !passedOn) done = passedOn;
  for (const auto& work : ended.afterwards_)
    if (const Status worked = work(); done && !worked) done = worked;
  takeMemoryOf(ended);
  return done;
}

bool Group::collectPlain(ncclComm& communicator, const Call& call) {
  if (!calls_.empty() || !blocking_.value_or(true)) return false;
  blocking_ = true;
  owners_.resize(plain_.size());  // where memory ran out, one is too many
  if (owners_.empty() || owners_.back() != &communicator) inUse_.emplace_back(communicator);
  owners_.push_back(&communicator);
  Submission& kept = plain_.emplace_back();
  kept.engine = communicator.engine.get();
  kept.call = call;
  return true;
}

/// Something else joins the plain calls.
void Group::makeOrdinary() {
  for (size_t i = 0; i < plain_.size(); ++i) calls_.push_back({owners_[i], plain_[i].call});
  plain_.clear();
  owners_.clear();
}

bool Group::isPlain() const {
  return !plain_.empty() && !firstError_ && jobs_.empty() && afterwards_.empty() && oneSided_.empty();
}

/// The same as run() where there is nothing else to do: to move everything out and in again takes as long as a short
/// message.
Status Group::runPlainly() {
  struct Emptied {
    Group& group;
    ~Emptied() {
      group.plain_.clear();
      group.owners_.clear();
      group.inUse_.clear();
      group.blocking_.reset();
    }
  } emptied{*this};
  for (ncclComm* owner : owners_) awaitQueued(*owner);
  return plain_[0].engine->run(plain_);
}

/// The next group of the thread allocates nothing.
void Group::takeMemoryOf(Group& ended) {
  constexpr std::size_t most = 1024;
  if (open() || ended.calls_.capacity() > most) return;
  ended.calls_.clear();
  ended.inUse_.clear();
  calls_.swap(ended.calls_);
  inUse_.swap(ended.inUse_);
  plain_.swap(ended.plain_);
  owners_.swap(ended.owners_);
}

Result<std::optional<float>> Group::simulateEnd() {
  if (!open()) return log::decided(Error::invalidUsage("ncclGroupSimulateEnd without ncclGroupStart"));
  if (--depth_ > 0) return std::optional<float>();
  VendorsGroup(std::exchange(vendors_, nullptr)).simulate();
  Group ended = std::exchange(*this, Group());
  ended.makeOrdinary();
  for (const SetupJob& job : ended.jobs_) CommunicatorUse::release(*job.communicator);
  for (const auto& work : ended.afterwards_)
    if (const Status worked = work(); !worked && !ended.firstError_) ended.firstError_ = worked.error();
  if (ended.firstError_) return *ended.firstError_;
  if (!ended.jobs_.empty())
    return log::decided(Error::invalidUsage(
        "ncclGroupSimulateEnd: the group makes communicators, which cannot be simulated; end it with ncclGroupEnd"));
  const auto time = estimateCalls(ended.calls_);
  if (!time) return time.error();
  return std::optional<float>(*time);
}

Status Group::runCollected() {
  const auto isHosts = [](const PendingCall& pending) { return pending.communicator->host != nullptr; };
  const auto isQueued = [](const PendingCall& pending) { return pending.hostStream != nullptr; };
  if (std::any_of(calls_.begin(), calls_.end(), isQueued)) return queueCalls(calls_, inUse_, blocking_.value_or(true));
  // The vendor's engine only enqueues: that needs no background.
  if (blocking_.value_or(true) || std::none_of(calls_.begin(), calls_.end(), isHosts)) return runCalls(calls_);
  const auto calls = std::make_shared<const std::vector<PendingCall>>(std::move(calls_));
  return runInBackground(std::move(inUse_), [calls] { return runCalls(*calls); });
}

Status Group::runWithOneSided() {
  const auto firstWait = std::find_if(oneSided_.begin(), oneSided_.end(), [](const auto& work) { return work.waits; });
  const auto before = static_cast<std::size_t>(firstWait - oneSided_.begin());
  const auto isQueued = [](const auto& work) { return work.hostStream != nullptr; };
  const bool onStreams =
      std::all_of(oneSided_.begin(), oneSided_.end(), isQueued) && std::all_of(calls_.begin(), calls_.end(), isQueued);
  // What is sent, the calls, what is waited for.
  const auto inOrder = [before](std::span<const OneSidedWork> all, const std::function<Status()>& run) -> Status {
    if (const Status sent = runOneSided(all.first(before)); !sent) return sent;
    if (const Status done = run(); !done) return done;
    return runOneSided(all.subspan(before));
  };
  if (blocking_.value_or(true) || onStreams) return inOrder(oneSided_, [this] { return runCollected(); });
  if (std::any_of(oneSided_.begin(), oneSided_.end(), isQueued) || std::any_of(calls_.begin(), calls_.end(), isQueued))
    return log::decided(Error::invalidUsage(
        "a group of nonblocking communicators with one-sided messages uses host streams for all its calls, or none"));
  const auto calls = std::make_shared<const std::vector<PendingCall>>(std::move(calls_));
  const auto works = std::make_shared<const std::vector<OneSidedWork>>(std::move(oneSided_));
  for (const OneSidedWork& work : *works) inUse_.emplace_back(**work.use);
  return runInBackground(std::move(inUse_),
                         [calls, works, inOrder] { return inOrder(*works, [&] { return runCalls(*calls); }); });
}

Status Group::run() {
  if (firstError_) {
    for (const SetupJob& job : jobs_) CommunicatorUse::release(*job.communicator);
    return *firstError_;
  }
  const Status made = jobs_.empty() ? Status() : runSetupJobs(std::move(jobs_), blocking_.value_or(true));
  if (!made && made.error().code() != ErrorCode::inProgress) return made;
  if (const Status done = oneSided_.empty() ? runCollected() : runWithOneSided(); !done) return done;
  return made;
}

}  // namespace falcon::api
