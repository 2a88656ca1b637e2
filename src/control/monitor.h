// What the one monitor thread does: reads the call log, speaks on the bus, obeys, and is the controller where the bus
// says so.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "bootstrap/bus.h"
#include "control/authority.h"
#include "control/first_communicator.h"
#include "control/job_files.h"
#include "control/member.h"
#include "control/office.h"
#include "control/suspend_requests.h"

namespace falcon::control {

/// What the monitor works on; all outlive it.
struct MonitorParts {
  const std::string& jobName;
  const Clock& clock;
  transport::Reactor& reactor;
  bootstrap::Bus& bus;
  JobFiles& files;
  Trap& trap;
  TransferSums& transfers;
  CommunicatorTable& communicators;
  PlanBook& plans;
  SuspendRequests& requests;
  validate::ComputeBenchmark& benchmark;
  validate::GpuTester* gpu = nullptr;
  gpu::LaunchedWork* launched = nullptr;
  RestartBook* restarts = nullptr;
  RoleBook* roles = nullptr;
};

/// run() is the thread's body; everything else is thread-safe.
class Monitor {
 public:
  explicit Monitor(const MonitorParts& parts) : parts_(parts) {}

  /// Returns after stop(), when this process's part in the job has ended in order.
  void run();
  void stop();

  /// A communicator exists: until then nobody is known whose controller this process could be.
  void begin() { first_.isMade(); }
  /// Soon, on the monitor's thread.
  void post(std::function<void(Member& member)> work);
  /// Sends that request of `requests` to the controller, again where another one takes over.
  void ask(std::uint64_t number);

 private:
  template <class Step>
  bool attempt(const Step& step) noexcept;
  void takePart();
  void work();
  void runPosted();
  void goOff();
  void changeOffice();
  void dispatch(const bootstrap::BusMessage& bus);
  void obey(ProcessId from, const Message& order);
  void obeyCommands();
  void send(std::uint64_t number);
  void failRequests();
  void showHeartbeat();
  void showState();
  void showNet();

  const MonitorParts parts_;
  FirstCommunicator first_;
  std::atomic<bool> stop_{false};
  std::mutex postedMutex_;
  std::vector<std::function<void(Member& member)>> posted_;

  // Of the monitor's thread alone.
  DecisionBook decisions_;
  std::unique_ptr<Member> member_;
  std::optional<Authority> authority_;
  std::optional<Office> office_;
  bool asked_ = false;      ///< the controller to switch Falcon off
  bool officeDue_ = false;  ///< the bus has another controller, which is not heeded in full yet
  bool failed_ = false;     ///< a step has thrown since Falcon was last asked to go off
  bool failureSaid_ = false;
  bool forgedSaid_ = false;
  Nanoseconds netShown_{0};
  std::optional<Member::LetGo> letGo_;  ///< since the controller died, and its successor is not known yet
};

}  // namespace falcon::control
