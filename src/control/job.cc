#include "control/job.h"

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/contained.h"
#include "base/job_rank.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "bootstrap/bus.h"
#include "bootstrap/random.h"
#include "collectives/member_info.h"
#include "control/communicator_facts.h"
#include "control/communicator_table.h"
#include "control/job_attempts.h"
#include "control/job_files.h"
#include "control/monitor.h"
#include "control/plan_book.h"
#include "control/restart_book.h"
#include "control/restart_time.h"
#include "control/role_book.h"
#include "control/suspend_requests.h"
#include "control/transfer_sums.h"
#include "control/trap.h"
#include "control/vendor_events.h"

namespace falcon::control {
namespace {

class LiveJob final : public Job, private CallRecorder, public std::enable_shared_from_this<LiveJob> {
 public:
  LiveJob(std::shared_ptr<transport::Reactor> reactor, std::string name)
      : name_(std::move(name)),
        reactor_(std::move(reactor)),
        trap_(clock_),
        benchmark_(validate::makeComputeBenchmark(clock_)),
        gpu_(validate::makeGpuTester(clock_)) {
    auto files = JobFiles::open(name_);
    if (!files) throw std::runtime_error(files.error().message());  // caught where jobs are made
    files_ = std::move(*files);
    transfers_.keepIn(&files_->log());
    auto bus = bootstrap::makeEmbeddedBus(reactor_, jobRankFromEnvironment());
    if (!bus) throw std::runtime_error(bus.error().message());
    bus_ = std::move(*bus);
    monitor_.emplace(MonitorParts{name_, clock_, *reactor_, *bus_, *files_, trap_, transfers_, communicators_, plans_,
                                  requests_, *benchmark_, gpu_.get(), &launched_, &restarts_, &roles_});
    VendorEvents& events = VendorEvents::ofProcess();
    thread_ = libraryThread("nccl-falcon-mon", [this] { monitor_->run(); });
    events.jobBegins(transfers_, files_->log());
  }

  ~LiveJob() override {
    VendorEvents::ofProcess().jobEnds(transfers_);
    monitor_->stop();
    thread_.join();
  }

  EngineHooks hooks() override { return {&trap_, this, &transfers_}; }
  std::string contact() const override { return bus_->contact().encode(); }

  gpu::LaunchedWork& launchedWork() override { return launched_; }

  instrument::Making making(const instrument::MakingEntry& entry) override {
    return files_->log().making(entry, shared_from_this());
  }

  int add(KnownCommunicator communicator) noexcept override {
    Membership& membership = *communicator.membership;
    int place = noPlace;
    const auto say = [](const char* problem) { log::notice("Falcon does not watch a communicator: {}", problem); };
    if (contained([&] { place = addWhole(std::move(communicator)); }, say)) return place;
    remove(membership);
    return noPlace;
  }

  void remove(Membership& membership) noexcept override {
    // Communicators end here, in destructors: without memory for it nobody is told, and nothing else is left out.
    const auto nothing = [](const char*) {};
    plans_.forget({membership.id(), membership.rank()});
    contained([&] { trap_.forget({membership.id(), membership.rank()}); }, nothing);
    files_->log().remove(membership.id(), membership.rank());
    const auto id = communicators_.remove(membership);
    if (id && membership.rank() == 0)
      contained([&] { monitor_->post([id = *id](Member& member) { member.gone(id); }); }, nothing);
  }

  Status registerLayout(Membership& membership, const RegisteredPart& layout) override {
    PartKnown known{
        layout.dataParallelSize,      layout.pipelineParallelSize, layout.tensorParallelSize, layout.dataParallelIndex,
        layout.pipelineParallelIndex, layout.tensorParallelIndex,  layout.microBatches,       {}};
    known.multiple = layout.limits.multiple;
    known.leastMicroBatches = layout.limits.leastMicroBatches;
    known.mostMicroBatches = layout.limits.mostMicroBatches;
    known.evenOnly = layout.limits.evenOnly;
    known.rail = layout.limits.rail;
    if (!plans_.setPart({membership.id(), membership.rank()}, layout)) {
      if (!severalRanks_.exchange(true))
        log::notice(
            "this process has several ranks, so Falcon does not re-split their micro-batches; that needs one rank a "
            "process");
      known = {};  // one replica: nothing to split
    }
    sayPart([&](PartKnown& said) {
      known.role = said.role;
      known.stateBytes = said.stateBytes;
      said = known;
    });
    return {};
  }

  void canReshape(Membership& membership, int role, std::uint64_t stateBytes) override {
    if (membership.rank() != jobRankFromEnvironment() || severalRanks_) return;
    roles_.enable();
    sayPart([&](PartKnown& said) {
      said.role = role;
      said.stateBytes = stateBytes;
    });
  }

  std::optional<RolesDue> rolesDue(Membership&, std::uint64_t iteration) override {
    auto change = roles_.take(iteration);
    if (!change) return std::nullopt;
    return RolesDue{change->agreement, std::move(change->roles), std::move(change->avoid)};
  }

  void reshaped(const RolesDue& change, double seconds, const std::string& problem) override {
    const Reshaped outcome{change.agreement, problem.empty(), seconds, problem};
    monitor_->post([outcome](Member& member) { member.reshaped(outcome); });
  }

  Result<IterationPlan> iterationBegin(Membership& membership, std::uint64_t iteration) override {
    trap_.noteCall(clock_.now());
    return plans_.begin({membership.id(), membership.rank()}, iteration);
  }

  bool restartWanted(std::uint64_t iteration) override {
    trap_.noteCall(clock_.now());
    const bool first = !restarts_.isAsked();
    const bool wanted = restarts_.wanted(iteration);
    if (first)
      sayRestart([this](RestartKnown& known) {
        known.asked = true;
        known.expectedSeconds = seconds(parameters::restartExpected.value());
        // The first folder is our own, whatever it is called; "" where there is none.
        std::vector<std::string> folders{files_->folder()};
        const auto attempts = attemptsOf(name_);
        for (std::size_t before = 1; before < attempts.size() && !folders[0].empty(); ++before)
          folders.push_back(instrument::jobFolder(attempts[before]));
        known.measuredSeconds = restartSeconds(folders, wallTime());
      });
    return wanted;
  }
  bool restartDecided(std::uint64_t iteration) override { return restarts_.isDecidedFor(iteration); }
  Health health() override {
    const instrument::CallLogHeader& header = files_->log().header();
    return healthOf(static_cast<instrument::JobState>(header.state.load(std::memory_order_relaxed)),
                    header.failslowActive.load(std::memory_order_relaxed));
  }
  std::vector<Rank> leftOut() override { return restarts_.decided().value_or(std::vector<Rank>()); }
  void restarts() override { noteRestart(files_->folder(), wallTime()); }
  void checkpointed(std::uint64_t iteration, double waitedSeconds, double writtenSeconds, bool seesOthers) override {
    sayRestart([&](RestartKnown& known) {
      known.checkpoint = static_cast<std::int64_t>(iteration);
      known.waitedSeconds = waitedSeconds;
      known.writtenSeconds = writtenSeconds;
      known.seesOthers = seesOthers;
    });
  }
  void aside(const std::function<void()>& work) override {
    const Trap::Asking asking(trap_);
    work();
  }

  Status suspend(Nanoseconds limit) override {
    const Trap::Asking asking(trap_);  // or the trap would wait for this thread
    return ask([&](std::uint64_t number) { return AskSuspend{number, seconds(limit)}; });
  }
  Status resume() override {
    return ask([](std::uint64_t number) { return AskResume{number}; });
  }

 private:
  /// Throws where there is no memory, with a part of it done.
  int addWhole(KnownCommunicator communicator) {
    monitor_->begin();
    std::vector<bootstrap::BusContact> contacts;
    for (const collectives::MemberInfo& member : communicator.members) {
      auto contact = bootstrap::BusContact::decode(member.extra);
      if (contact)
        contacts.push_back(*contact);
      else
        log::notice(
            "a member of a communicator runs without Falcon or with another version: {}; that rank is not watched",
            contact.error().message());
    }
    const CommunicatorFormed formed = formedFrom(communicator);
    const bool first = communicator.membership->rank() == 0;
    const transport::Secret secret = communicator.secret;
    const int place = files_->log().add(logEntryOf(communicator));
    if (communicator.counts)
      trap_.watch({communicator.membership->id(), communicator.membership->rank()}, *communicator.counts);
    communicators_.add(std::move(communicator));
    bus_->meet(contacts, bootstrap::derivedSecret(secret, "bus", 0));  // it travels over the bus; the other does not
    if (first) monitor_->post([formed](Member& member) { member.formed(formed); });
    return place;
  }

  void sayPart(const std::function<void(PartKnown&)>& change) {
    PartKnown now;
    {
      const std::lock_guard lock(layoutMutex_);
      change(layout_);
      now = layout_;
    }
    monitor_->post([now](Member& member) { member.partKnown(now); });
  }

  void sayRestart(const std::function<void(RestartKnown&)>& change) {
    RestartKnown now;
    {
      const std::lock_guard lock(restartMutex_);
      change(restart_);
      now = restart_;
    }
    monitor_->post([now](Member& member) { member.restartKnown(now); });
  }

  Status ask(const std::function<Message(std::uint64_t number)>& request) {
    const std::uint64_t number = requests_.open(request);
    monitor_->ask(number);
    return requests_.wait(number);
  }

  Flight enter(CallingThread& thread, CallRecord& call, int place) noexcept override {
    const Flight flight = files_->log().enter(thread, call, place);
    if (!thread.inTrap) [[unlikely]]
      thread.inTrap = &trap_.mySlot();
    Trap::noteEntry(slotOf(flight));
    return flight;
  }
  void label(const LabelledCall& call) noexcept override { files_->log().label(call); }
  void leave(Flight flight, const CallRecord& call) noexcept override {
    files_->log().leave(flight, call);
    Trap::noteCall(slotOf(flight), call.leave);
  }
  void fail(Flight flight, const CallRecord& call, int place) noexcept override {
    files_->log().fail(flight, call, place);
    Trap::noteCall(slotOf(flight), clock_.now());
  }
  Trap::ThreadSlot& slotOf(const Flight& flight) noexcept {
    void* const known = flight.thread ? flight.thread->inTrap : nullptr;
    return known ? *static_cast<Trap::ThreadSlot*>(known) : trap_.mySlot();
  }

  const std::string name_;
  SystemClock clock_;
  std::shared_ptr<transport::Reactor> reactor_;
  std::unique_ptr<JobFiles> files_;
  Trap trap_;
  gpu::MarkedWork launched_{gpu::cudaDriverIfLoaded, clock_};
  TransferSums transfers_;
  CommunicatorTable communicators_;
  PlanBook plans_;
  RestartBook restarts_;
  RoleBook roles_;
  std::mutex layoutMutex_;
  PartKnown layout_;
  std::mutex restartMutex_;
  RestartKnown restart_;
  std::atomic<bool> severalRanks_{false};  ///< with layouts of their own, and it was said
  std::unique_ptr<validate::ComputeBenchmark> benchmark_;
  std::unique_ptr<validate::GpuTester> gpu_;
  std::shared_ptr<bootstrap::EmbeddedBus> bus_;
  SuspendRequests requests_;
  std::optional<Monitor> monitor_;
  std::thread thread_;
};

struct CurrentJob {
  std::mutex mutex;
  std::weak_ptr<Job> job;
};
// A forked child's copy of the parent's job has no threads: the child starts its own.
constinit PerProcess<CurrentJob> current;

}  // namespace

Result<Nanoseconds> suspensionLimit(const char* function, unsigned milliseconds) {
  if (milliseconds == 0) return parameters::trapTimeout.value();
  const Nanoseconds limit = std::chrono::milliseconds(milliseconds);
  if (limit <= longestTrap) return limit;
  return log::decided(Error::invalidArgument("{}: limitMilliseconds is {}, more than an hour", function, milliseconds));
}

std::string jobNameFromEnvironment() {
  if (parameters::job.isSet()) return parameters::job.value();
  if (const char* elastic = std::getenv("TORCHELASTIC_RUN_ID")) {
    const char* restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
    return std::string(elastic) + "." + (restarts ? restarts : "0");
  }
  if (const char* slurm = std::getenv("SLURM_JOB_ID")) return std::string("slurm-") + slurm;
  return "";
}

std::shared_ptr<Job> Job::acquire(std::shared_ptr<transport::Reactor> reactor, const std::string& fallbackName) {
  if (!parameters::falcon.value()) return nullptr;
  CurrentJob& slot = current.get();
  const std::lock_guard lock(slot.mutex);
  if (auto running = slot.job.lock()) return running;
  const std::string named = jobNameFromEnvironment();
  std::shared_ptr<Job> job;
  try {
    job = std::make_shared<LiveJob>(std::move(reactor), named.empty() ? fallbackName : named);
  } catch (const std::exception& exception) {
    log::notice("Falcon cannot start: {}; this job runs without it", exception.what());
    return nullptr;
  }
  slot.job = job;
  return job;
}

}  // namespace falcon::control
