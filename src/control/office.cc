#include "control/office.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

#include "base/job_rank.h"
#include "base/log.h"
#include "base/parameters.h"
#include "control/stored_baseline.h"
#include "control/unended_job.h"

namespace falcon::control {
namespace {

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

}  // namespace

std::string clockDomain() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  char time[64] = {};
  if (boot.empty() || readlink("/proc/self/ns/time", time, sizeof time - 1) < 0)
    return boot.empty() ? fmt::format("{} {}", hostName(), getpid()) : boot;
  return boot + " " + time;
}

Office::Office(std::string jobName, bootstrap::Bus& bus, const Clock& clock, JobFiles& files, DecisionBook& decisions)
    : jobName_(std::move(jobName)),
      bus_(bus),
      clock_(clock),
      files_(files),
      decisions_(decisions),
      outbox_(std::make_unique<BusOutbox>(bus, decisions)),
      metrics_(parameters::metrics.value(), jobName_, hostName(), wallTime) {}

ControllerSettings Office::settings() {
  ControllerSettings settings = settingsFromParameters();
  // Most serve for a moment before they have met the others, but not who has met them at once.
  settings.successor = std::exchange(served_, true) || followed_;
  settings.clockDomain = clockDomain();
  settings.present = [this] { return bus_.members(); };
  settings.decisions = &decisions_;
  if (files_.folder().empty()) return settings;
  settings.stored = earlierBaseline(jobName_, files_.log().header().startWallTime);
  settings.keep = [this](const StoredBaseline& baseline) {
    const auto written = writeBaseline(files_.folder(), baseline);
    if (!written && !std::exchange(baselineLost_, true))
      log::notice("{}; a restart of this job has nothing to be compared with", written.error().message());
  };
  return settings;
}

// As `falcon status` lists it: by its folder.
std::string Office::shownName() const {
  return files_.folder().empty() ? jobName_ : std::filesystem::path(files_.folder()).filename().string();
}

void Office::take() {
  if (bus_.isController() && !controller_) {
    if (!events_) {
      const std::string& chosen = parameters::events.value();
      using Place = report::JsonLinesSink::Place;
      events_ = std::make_unique<EventFile>(
          files_.noteEventsPath(chosen),
          chosen.empty() && !files_.folder().empty() ? Place::ownFolder : Place::anywhere, shownName());
    }
    const ControllerSettings given = settings();
    since_ = clock_.now();
    planShown_ = 0;
    controller_ = std::make_unique<Controller>(given, clock_, wallTime, *outbox_, *events_);
  } else if (!bus_.isController()) {
    followed_ = true;
    if (controller_) controller_->handOver();
    controller_.reset();
  }
}

// Only what a controller has decided: at a job's end several are it for a moment, with nothing to say.
void Office::showPlan() {
  const PlanState& plans = controller_->plans();
  if (plans.version == 0 || (plans.version == planShown_ && plans.waiting.empty())) return;
  planShown_ = plans.version;
  files_.keepPlan(toJson(plans));
}

void Office::showState() {
  instrument::CallLogHeader& header = files_.log().header();
  header.controller.store(controller_ ? 1 : 0, std::memory_order_relaxed);
  if (!controller_) return;
  const bool news = std::exchange(shownState_, controller_->state()) != controller_->state();
  if (!news && clock_.now() - shown_ < 1s) return;
  shown_ = clock_.now();
  const auto active = static_cast<std::uint32_t>(controller_->activeCount());
  showPlan();
  header.failslowActive.store(active, std::memory_order_relaxed);
  if (!controller_->isOff()) outbox_->toAll(ShowState{static_cast<std::uint32_t>(controller_->state()), active});
  // Who is the controller for a moment only, as others come or leave, would overwrite what the real one wrote.
  if (metrics_.wanted() && clock_.now() - since_ >= 2s) metrics_.write(*controller_, files_.log());
}

void Office::end() {
  if (!controller_) return;
  showPlan();
  const instrument::CallLogHeader& header = files_.log().header();
  // Who leaves in order has said the job's end; who dies has not.
  const bool inherited = followed_ && hasUnendedJob(events_->path(), events_->job(), header.startWallTime);
  controller_->end(header.iterations.load(), inherited);
}

}  // namespace falcon::control
