#include "control/job.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <thread>
#include <utility>

#include "base/job_rank.h"
#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "bootstrap/bus.h"
#include "control/communicator_table.h"
#include "control/controller.h"
#include "control/job_folder.h"
#include "control/member.h"
#include "control/plan_book.h"
#include "control/transfer_sums.h"
#include "control/trap.h"
#include "report/json_lines.h"
#include "report/metrics_text.h"

namespace falcon::control {
namespace {

constexpr std::uint32_t callLogCapacity = 1 << 15;
constexpr Nanoseconds tickInterval = 100ms;

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = "unknown";
  gethostname(name, sizeof name - 1);
  return name;
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
  settings.onsetThresholdPercent = parameters::onsetThreshold.value();
  settings.deterministic = parameters::deterministic.value();
  return settings;
}

/// What the monitor's thread sends on behalf of the controller.
class BusOutbox final : public Outbox {
 public:
  explicit BusOutbox(bootstrap::Bus& bus) : bus_(bus) {}
  void to(ProcessId process, const Message& message) override { bus_.to(process, encode(message)); }
  void toAll(const Message& message) override { bus_.toAll(encode(message)); }

 private:
  bootstrap::Bus& bus_;
};

/// Writes events where the parameters say; where that fails, into nothing. The file is opened for the first event: at a
/// job's end several ranks are the controller for a moment, and have nothing to say.
class EventFile final : public EventSink {
 public:
  explicit EventFile(std::string path) : path_(std::move(path)) {}
  void add(const Event& event) override {
    log::info("Falcon: {}: {}", nameOf(event.kind), event.text);
    if (!opened_) open();
    if (sink_) sink_->add(event);
  }

 private:
  void open() {
    opened_ = true;
    auto opened = report::JsonLinesSink::open(path_);
    if (opened)
      sink_.emplace(std::move(*opened));
    else
      log::notice("{}; events are not kept", opened.error().message());
  }

  const std::string path_;
  bool opened_ = false;
  std::optional<report::JsonLinesSink> sink_;
};

class LiveJob final : public Job, private CallRecorder {
 public:
  LiveJob(std::shared_ptr<transport::Reactor> reactor, std::string name)
      : name_(std::move(name)),
        reactor_(std::move(reactor)),
        trap_(clock_),
        benchmark_(validate::makeComputeBenchmark(clock_)) {
    openLog();
    bus_ = bootstrap::makeEmbeddedBus(reactor_, jobRankFromEnvironment());
    monitor_ = std::thread([this] { monitor(); });
  }

  ~LiveJob() override {
    stop_.store(true);
    bus_->wake();
    monitor_.join();
    if (log_) log_->dropRecords();
  }

  EngineHooks hooks() override { return {&trap_, this, &transfers_}; }
  std::string contact() const override { return bus_->contact().encode(); }

  void add(KnownCommunicator communicator) override {
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
    const CommunicatorFormed formed = describe(communicator);
    const bool first = communicator.engine->rank() == 0;
    const transport::Secret secret = communicator.secret;
    communicators_.add(std::move(communicator));
    bus_->meet(contacts, secret);
    if (first) post([this, formed] { member_->formed(formed); });
  }

  void remove(Engine& engine) override {
    plans_.forget({engine.id(), engine.rank()});
    const bool first = engine.rank() == 0;
    const auto id = communicators_.remove(engine);
    if (id && first) post([this, id = *id] { member_->gone(id); });
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

 private:
  void record(const CallRecord& record) noexcept override {
    log_->write(record);
    trap_.noteCall(record.leave);
  }

  void openLog() {
    const char* world = std::getenv("WORLD_SIZE");
    const instrument::CallLogIdentity identity{name_, hostName(), jobRankFromEnvironment(),
                                               world ? std::atoi(world) : 0};
    removeOldJobs();
    folder_ = instrument::jobFolder(name_);
    const std::string file =
        fmt::format("{}/rank-{}.calls", folder_, identity.jobRank >= 0 ? identity.jobRank : getpid());
    const auto made = makeJobFolder(folder_);
    if (made) removeDeadRanks(folder_, hostName());
    auto log = made ? instrument::CallLog::create(file, identity, callLogCapacity)
                    : Result<std::unique_ptr<instrument::CallLog>>(made.error());
    if (!log) {
      log::notice("{}; the call log is kept in private memory, `falcon status` will not see this rank",
                  log.error().message());
      folder_.clear();
      log = instrument::CallLog::create("", identity, callLogCapacity);
    }
    if (log) log_ = std::move(*log);
  }

  CommunicatorFormed describe(const KnownCommunicator& communicator) const {
    CommunicatorFormed formed;
    formed.id = communicator.engine->id();
    formed.hostEngine = communicator.host != nullptr;
    for (const collectives::MemberInfo& member : communicator.members) {
      formed.jobRanks.push_back(member.peer.jobRank);
      formed.nodes.push_back(member.peer.node);
    }
    if (communicator.host) formed.ring = formed.firstRing = communicator.host->ringOrder();
    return formed;
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
    for (const auto& each : work) each();
  }

  // The monitor: a member always, the controller too on the lowest rank.
  void monitor() {
    pthread_setname_np(pthread_self(), "nccl-falcon-mon");
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);  // the application's handlers run on the application's threads
    Introduce identity;
    identity.jobRank = jobRankFromEnvironment();
    identity.host = hostName();
    identity.pid = getpid();
    identity.address = reactor_->address().host();
    member_ = std::make_unique<Member>(
        MemberParts{*bus_, clock_, *log_, trap_, transfers_, communicators_, plans_, *benchmark_}, identity);
    outbox_ = std::make_unique<BusOutbox>(*bus_);
    takeOffice();
    while (!stop_.load()) {
      for (const bootstrap::BusMessage& message : bus_->take(tickInterval)) dispatch(message);
      runPosted();
      member_->tick();
      obeyCommands();
      if (controller_) controller_->tick();
      showState();
    }
    if (controller_) controller_->end();
    trap_.open();
  }

  // Becomes the controller, or stops being it, as the bus says.
  void takeOffice() {
    if (bus_->isController() && !controller_) {
      if (!events_) {
        const std::string chosen = parameters::events.value();
        const std::string path = !chosen.empty() ? chosen : folder_.empty() ? "" : folder_ + "/events.jsonl";
        events_ = std::make_unique<EventFile>(path.empty() ? "/dev/null" : path);
      }
      ControllerSettings settings = settingsFromParameters();
      settings.successor = std::exchange(served_, true);
      inOfficeSince_ = clock_.now();
      controller_ = std::make_unique<Controller>(settings, clock_, wallTime, *outbox_, *events_);
    } else if (!bus_->isController()) {
      if (controller_) controller_->handOver();
      controller_.reset();
    }
  }

  void dispatch(const bootstrap::BusMessage& bus) {
    using Kind = bootstrap::BusMessage::Kind;
    if (bus.kind == Kind::controllerChanged) {
      takeOffice();
      member_->newController();
      return;
    }
    if (bus.kind == Kind::left) {
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
      member_->handle(*message);
    else if (controller_)
      controller_->handle(bus.from, *message);
  }

  void obeyCommands() {
    if (static_cast<instrument::JobCommand>(log_->header().command.load(std::memory_order_acquire)) !=
        instrument::JobCommand::off)
      return;
    if (member_->isOff() || asked_) return;
    asked_ = true;
    bus_->toController(encode(RequestOff{}));
  }

  void showState() {
    instrument::CallLogHeader& header = log_->header();
    header.controller.store(controller_ ? 1 : 0, std::memory_order_relaxed);
    header.held.store(trap_.closed() ? 1 : 0, std::memory_order_relaxed);
    if (!controller_ || clock_.now() - shown_ < 1s) return;
    shown_ = clock_.now();
    const auto active = static_cast<std::uint32_t>(controller_->activeCount());
    header.failslowActive.store(active, std::memory_order_relaxed);
    if (!controller_->isOff()) outbox_->toAll(ShowState{static_cast<std::uint32_t>(controller_->state()), active});
    const std::string path = parameters::metrics.value();
    // Who is the controller for a moment only, as others come or leave, would overwrite what the real one wrote.
    if (path.empty() || clock_.now() - inOfficeSince_ < 2s) return;
    report::JobMetrics metrics;
    metrics.job = name_;
    metrics.node = hostName();
    metrics.rank = jobRankFromEnvironment();
    metrics.iterationSeconds = static_cast<double>(header.iterationNanoseconds.load(std::memory_order_relaxed)) * 1e-9;
    metrics.slowRanks = controller_->activeCount(CulpritKind::rank);
    metrics.slowLinks = controller_->activeCount(CulpritKind::link);
    metrics.mitigations = controller_->mitigations();
    if (const auto written = report::writeMetrics(path, metrics); !written && !metricsFailed_) {
      metricsFailed_ = true;
      log::notice("{}", written.error().message());
    }
  }

  const std::string name_;
  SystemClock clock_;
  std::shared_ptr<transport::Reactor> reactor_;
  std::string folder_;  ///< "" where shared memory was not to be had
  std::unique_ptr<instrument::CallLog> log_;
  Trap trap_;
  TransferSums transfers_;
  CommunicatorTable communicators_;
  PlanBook plans_;
  std::atomic<bool> severalRanks_{false};  ///< with layouts of their own, and it was said
  std::unique_ptr<validate::ComputeBenchmark> benchmark_;
  std::shared_ptr<bootstrap::EmbeddedBus> bus_;

  // Of the monitor's thread alone.
  std::unique_ptr<Member> member_;
  std::unique_ptr<BusOutbox> outbox_;
  std::unique_ptr<EventFile> events_;
  std::unique_ptr<Controller> controller_;
  Nanoseconds shown_{0};
  Nanoseconds inOfficeSince_{0};
  bool asked_ = false;
  bool served_ = false;  ///< this process has been the controller before
  bool metricsFailed_ = false;

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
