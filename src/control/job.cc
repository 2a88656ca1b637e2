#include "control/job.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/contained.h"
#include "base/job_rank.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "bootstrap/bus.h"
#include "bootstrap/random.h"
#include "collectives/member_info.h"
#include "control/authority.h"
#include "control/communicator_facts.h"
#include "control/communicator_table.h"
#include "control/controller.h"
#include "control/event_file.h"
#include "control/first_communicator.h"
#include "control/job_files.h"
#include "control/member.h"
#include "control/metrics_file.h"
#include "control/plan_book.h"
#include "control/ranges.h"
#include "control/suspend_requests.h"
#include "control/transfer_sums.h"
#include "control/trap.h"

namespace falcon::control {
namespace {

constexpr Nanoseconds tickInterval = 100ms;
constexpr Nanoseconds closingInterval = 2ms;  // while others wait for this process to be held

// CLOCK_MONOTONIC is the same for all processes since a machine was booted, but for those in a time namespace.
std::string clockDomain() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char time[64] = {};
  if (boot.empty() || readlink("/proc/self/ns/time", time, sizeof time - 1) < 0)
    return boot.empty() ? fmt::format("{} {}", hostName(), getpid()) : boot;
  return boot + " " + time;
}

double wallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ControllerSettings settingsFromParameters() {
  ControllerSettings settings;
  settings.validate = parameters::validate.value() == 1;
  settings.mitigate = static_cast<MitigateMode>(parameters::mitigate.value());
  settings.trapBudgetPercent = parameters::trapBudget.value();
  settings.trapTimeout = parameters::trapTimeout.value();
  settings.trapEntry = parameters::trapEntry.value();
  settings.onsetThresholdPercent = parameters::onsetThreshold.value();
  settings.deterministic = parameters::deterministic.value();
  return settings;
}

/// What the monitor's thread sends on behalf of the controller.
class BusOutbox final : public Outbox {
 public:
  BusOutbox(bootstrap::Bus& bus, DecisionBook& decisions) : bus_(bus), decisions_(decisions) {}
  // Noted first: what a controller has decided it can recall for the next, whoever has heard it.
  void to(ProcessId process, const Message& message) override {
    if (const auto* decision = std::get_if<Decide>(&message)) decisions_.note(*decision);
    bus_.to(process, encode(message));
  }
  void toAll(const Message& message) override { bus_.toAll(encode(message)); }

 private:
  bootstrap::Bus& bus_;
  DecisionBook& decisions_;
};

class LiveJob final : public Job, private CallRecorder {
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
    monitor_ = libraryThread("nccl-falcon-mon", [this] { monitor(); });
  }

  ~LiveJob() override {
    stop_.store(true);
    first_.isGivenUp();
    bus_->wake();
    monitor_.join();
  }

  EngineHooks hooks() override { return {&trap_, this, &transfers_}; }
  std::string contact() const override { return bus_->contact().encode(); }

  vendor::LaunchedWork& launchedWork() override { return launched_; }

  instrument::Making making(const instrument::MakingEntry& entry) override { return files_->log().making(entry); }

  int add(KnownCommunicator communicator) override {
    first_.isMade();
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
    const bool first = communicator.engine->rank() == 0;
    const transport::Secret secret = communicator.secret;
    const int place = files_->log().add(logEntryOf(communicator));
    if (communicator.counts)
      trap_.watch({communicator.engine->id(), communicator.engine->rank()}, *communicator.counts);
    communicators_.add(std::move(communicator));
    bus_->meet(contacts, bootstrap::derivedSecret(secret, "bus", 0));  // it travels over the bus; the other does not
    if (first) post([this, formed] { member_->formed(formed); });
    return place;
  }

  void remove(Engine& engine) override {
    plans_.forget({engine.id(), engine.rank()});
    trap_.forget({engine.id(), engine.rank()});
    files_->log().remove(engine.id(), engine.rank());
    const bool first = engine.rank() == 0;
    const auto id = communicators_.remove(engine);
    // Communicators end here, in destructors: without memory for it nobody is told, and nothing else happens.
    if (id && first) contained([&] { post([this, id = *id] { member_->gone(id); }); }, [](const char*) {});
  }

  Status registerLayout(Engine& engine, const Layout& layout) override {
    LayoutKnown known{
        layout.dataParallelSize,      layout.pipelineParallelSize, layout.tensorParallelSize, layout.dataParallelIndex,
        layout.pipelineParallelIndex, layout.tensorParallelIndex,  layout.microBatches,       {}};
    if (!plans_.setLayout({engine.id(), engine.rank()}, layout)) {
      if (!severalRanks_.exchange(true))
        log::notice(
            "this process has several ranks, so Falcon does not re-split their micro-batches; that needs one rank a "
            "process");
      known = {};  // one replica: nothing to split
    }
    post([this, known] { member_->layoutKnown(known); });
    return {};
  }

  Result<IterationPlan> iterationBegin(Engine& engine, std::uint64_t iteration) override {
    trap_.noteCall(clock_.now());
    return plans_.begin({engine.id(), engine.rank()}, iteration);
  }

  Status suspend(Nanoseconds limit) override {
    const Trap::Asking asking(trap_);  // or the trap would wait for this thread
    return ask([&](std::uint64_t number) { return AskSuspend{number, seconds(limit)}; });
  }
  Status resume() override {
    return ask([](std::uint64_t number) { return AskResume{number}; });
  }

 private:
  Status ask(const std::function<Message(std::uint64_t number)>& request) {
    const std::uint64_t number = requests_.open(request);
    post([this, number] { send(number); });
    return requests_.wait(number);
  }

  void send(std::uint64_t number) {
    if (member_->isOff()) return failRequests();
    if (const auto message = requests_.message(number)) bus_->toController(encode(*message));
  }

  Flight enter(CallRecord& call, int place) noexcept override {
    trap_.noteEntry();
    return files_->log().enter(call, place);
  }
  void label(const LabelledCall& call) noexcept override { files_->log().label(call); }
  void leave(Flight flight, const CallRecord& call) noexcept override {
    files_->log().leave(flight, call);
    trap_.noteCall(call.leave);
  }
  void fail(Flight flight, const CallRecord& call, int place) noexcept override {
    files_->log().fail(flight, call, place);
    trap_.noteCall(clock_.now());
  }

  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(postedMutex_);
      posted_.push_back(std::move(work));
    }
    bus_->wake();
  }

  void runPosted() {
    std::vector<std::function<void()>> work;
    {
      const std::lock_guard lock(postedMutex_);
      work.swap(posted_);
    }
    for (const auto& each : work) attempt(each);
  }

  void failRequests() { requests_.failAll(Error::invalidUsage("Falcon was switched off in this job")); }

  /// What the monitor does step by step. A step that throws (no memory, mostly) ends neither the thread nor the job.
  template <class Step>
  bool attempt(const Step& step) noexcept {
    return contained(step, [this](const char* problem) {
      failed_ = true;
      if (failureSaid_) return;
      log::notice("Falcon's monitor failed: {}; Falcon switches itself off in this job, which goes on", problem);
      failureSaid_ = true;
    });
  }

  // By way of the controller, as `falcon off` does: first it decides what it has proposed, so that nobody waits for it.
  // The member goes on until then.
  void goOff() {
    member_->giveUp();
    if (member_->isOff()) failRequests();
    failed_ = false;
  }

  // The monitor: a member always, the controller too on the lowest rank.
  void monitor() {
    // Until then nobody is known whose controller this process could be. What comes by the bus meanwhile stays there.
    if (!first_.await(tickInterval, [this] { showHeartbeat(); })) return;
    bool takesPart = false;
    while (!stop_.load() && !(takesPart = attempt([this] { takePart(); }))) {
      attempt([this] { failRequests(); });
      std::this_thread::sleep_for(tickInterval);
    }
    if (!takesPart) return;
    while (!stop_.load()) work();
    attempt([this] {
      if (controller_) controller_->end(files_->log().header().iterations.load());
    });
    attempt([this] { member_->end(); });
  }

  void takePart() {
    Introduce identity;
    identity.jobRank = jobRankFromEnvironment();
    identity.host = hostName();
    identity.pid = getpid();
    identity.address = reactor_->address().host();
    identity.clockDomain = clockDomain();
    identity.processors = static_cast<std::int32_t>(sysconf(_SC_NPROCESSORS_ONLN));
    member_ =
        std::make_unique<Member>(MemberParts{*bus_, clock_, files_->log(), trap_, transfers_, communicators_, plans_,
                                             decisions_, *benchmark_, files_->ranges(), gpu_.get(), &launched_, &stop_},
                                 identity);
    outbox_ = std::make_unique<BusOutbox>(*bus_, decisions_);
    authority_.emplace(bus_->self());
    takeOffice();
  }

  void work() {
    std::vector<bootstrap::BusMessage> messages;
    attempt([&] { messages = bus_->take(member_->isClosing() ? closingInterval : tickInterval); });
    if (officeDue_) attempt([this] { changeOffice(); });
    for (const bootstrap::BusMessage& message : messages) attempt([&] { dispatch(message); });
    attempt([this] { runPosted(); });
    attempt([this] { member_->tick(); });
    attempt([this] { obeyCommands(); });
    attempt([this] {
      if (controller_) controller_->tick();
    });
    attempt([this] { showState(); });
    if (failed_) attempt([this] { goOff(); });
  }

  // Becomes the controller, or stops being it, as the bus says.
  void takeOffice() {
    if (bus_->isController() && !controller_) {
      if (!events_) events_ = std::make_unique<EventFile>(files_->noteEventsPath(parameters::events.value()));
      ControllerSettings settings = settingsFromParameters();
      settings.successor = std::exchange(served_, true);
      settings.clockDomain = clockDomain();
      settings.present = [this] { return bus_->members(); };
      settings.decisions = &decisions_;
      if (!files_->folder().empty()) {
        settings.stored = earlierBaseline(name_, files_->log().header().startWallTime);
        settings.keep = [this](const StoredBaseline& baseline) {
          const auto written = writeBaseline(files_->folder(), baseline);
          if (!written && !std::exchange(baselineLost_, true))
            log::notice("{}; a restart of this job has nothing to be compared with", written.error().message());
        };
      }
      inOfficeSince_ = clock_.now();
      controller_ = std::make_unique<Controller>(settings, clock_, wallTime, *outbox_, *events_);
    } else if (!bus_->isController()) {
      if (controller_) controller_->handOver();
      controller_.reset();
    }
  }

  void changeOffice() {
    officeDue_ = true;  // until all of it is done
    takeOffice();
    if (const auto letGo = std::exchange(letGo_, std::nullopt); letGo && controller_)
      controller_->inherit(letGo->asked, letGo->held);
    member_->newController();
    // The old one's word may never come.
    for (const std::uint64_t number : requests_.again()) send(number);
    officeDue_ = false;
  }

  void dispatch(const bootstrap::BusMessage& bus) {
    using Kind = bootstrap::BusMessage::Kind;
    if (bus.kind == Kind::controllerChanged) {
      authority_->changed(bus.from);
      return changeOffice();
    }
    if (bus.kind == Kind::left) {
      if (const auto letGo = member_->left(bus.from)) letGo_ = letGo;
      if (controller_) controller_->left(bus.from);
      return;
    }
    if (bus.kind != Kind::text) return;
    const auto message = decode(bus.bytes);
    if (!message) {
      log::warn("a message of {} bytes on the bus is not one of ours; dropped", bus.bytes.size());
      return;
    }
    // Orders come from the controller, everything else goes to it; the controller's own process gets both.
    if (isOrder(*message))
      obey(bus.from, *message);
    else if (controller_)
      controller_->handle(bus.from, *message);
  }

  void obey(ProcessId from, const Message& order) {
    const Authority::Word word = authority_->wordOf(from, order);
    if (word == Authority::Word::forged && !std::exchange(forgedSaid_, true))
      log::warn(
          "process {:x}, which is not the controller of this job, gave an order; it was dropped, as others like it are",
          from);
    if (word != Authority::Word::obeyed) return;
    if (const auto* answer = std::get_if<SuspendAnswer>(&order)) return requests_.answer(*answer);
    if (const auto* examined = std::get_if<Examined>(&order))
      return files_->keepExamination(examined->problem, examined->content);
    member_->handle(from, order);
    if (member_->isOff()) failRequests();
  }

  void obeyCommands() {
    using instrument::JobCommand;
    const std::uint32_t command = files_->log().header().command.load(std::memory_order_acquire);
    const auto what = static_cast<JobCommand>(command & ((1U << instrument::jobCommandBits) - 1));
    if (what == JobCommand::none || member_->isOff()) return;
    if (what == JobCommand::off) {
      if (!std::exchange(asked_, true)) bus_->toController(encode(RequestOff{}));
      return;
    }
    // Once each; what comes of it shows in the state of all ranks.
    std::uint32_t seen = command;
    files_->log().header().command.compare_exchange_strong(seen, 0, std::memory_order_acq_rel);
    const double limit = command >> instrument::jobCommandBits;
    if (what == JobCommand::suspend) bus_->toController(encode(AskSuspend{requests_.newNumber(), limit}));
    if (what == JobCommand::resume) bus_->toController(encode(AskResume{requests_.newNumber()}));
    if (what == JobCommand::examine) bus_->toController(encode(AskExamination{requests_.newNumber()}));
  }

  void showHeartbeat() { files_->log().header().heartbeat.store(clock_.now().count(), std::memory_order_relaxed); }

  void showState() {
    instrument::CallLogHeader& header = files_->log().header();
    showHeartbeat();
    header.controller.store(controller_ ? 1 : 0, std::memory_order_relaxed);
    header.held.store(trap_.closed() ? 1 : 0, std::memory_order_relaxed);
    if (!controller_) return;
    const bool news = std::exchange(shownState_, controller_->state()) != controller_->state();
    if (!news && clock_.now() - shown_ < 1s) return;
    shown_ = clock_.now();
    const auto active = static_cast<std::uint32_t>(controller_->activeCount());
    header.failslowActive.store(active, std::memory_order_relaxed);
    if (!controller_->isOff()) outbox_->toAll(ShowState{static_cast<std::uint32_t>(controller_->state()), active});
    // Who is the controller for a moment only, as others come or leave, would overwrite what the real one wrote.
    if (metrics_.wanted() && clock_.now() - inOfficeSince_ >= 2s) metrics_.write(*controller_, files_->log());
  }

  const std::string name_;
  SystemClock clock_;
  std::shared_ptr<transport::Reactor> reactor_;
  std::unique_ptr<JobFiles> files_;
  Trap trap_;
  vendor::MarkedWork launched_{vendor::cudaDriverIfLoaded};
  TransferSums transfers_;
  CommunicatorTable communicators_;
  PlanBook plans_;
  std::atomic<bool> severalRanks_{false};  ///< with layouts of their own, and it was said
  std::unique_ptr<validate::ComputeBenchmark> benchmark_;
  std::unique_ptr<validate::GpuTester> gpu_;
  std::shared_ptr<bootstrap::EmbeddedBus> bus_;
  FirstCommunicator first_;

  // Of the monitor's thread alone.
  DecisionBook decisions_;
  std::unique_ptr<Member> member_;
  std::optional<Authority> authority_;
  std::unique_ptr<BusOutbox> outbox_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<Controller> controller_;
  MetricsFile metrics_{parameters::metrics.value(), name_, hostName(), wallTime};
  Nanoseconds shown_{0};
  instrument::JobState shownState_ = instrument::JobState::starting;
  Nanoseconds inOfficeSince_{0};
  bool asked_ = false;
  bool officeDue_ = false;  ///< the bus has another controller, which is not heeded in full yet
  bool failed_ = false;     ///< a step has thrown since Falcon was last asked to go off
  bool failureSaid_ = false;
  bool forgedSaid_ = false;
  bool baselineLost_ = false;           ///< it could not be kept, and that was said
  std::optional<Member::LetGo> letGo_;  ///< since the controller died, and its successor is not known yet
  bool served_ = false;                 ///< this process has been the controller before

  SuspendRequests requests_;

  std::mutex postedMutex_;
  std::vector<std::function<void()>> posted_;
  std::atomic<bool> stop_{false};
  std::thread monitor_;
};

struct CurrentJob {
  std::mutex mutex;
  std::weak_ptr<Job> job;
};
// A forked child's copy of the parent's job has no threads: the child starts its own.
constinit PerProcess<CurrentJob> current;

}  // namespace

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
