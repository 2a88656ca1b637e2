// Observations in a call log of the process's own, beside NCCL: what `falcon status`, `top`, `trace` and `metrics`
// read.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "control/job_files.h"
#include "instrument/change_point.h"
#include "instrument/period_finder.h"
#include "plugin/profiler/outlet.h"
#include "profiler/iteration_watch.h"

namespace falcon::profiler {

/// Thread-safe. From the first communicator to the last there is a job, and a thread that looks at the log ten times a
/// second. Where there is neither memory nor a thread to be had nothing is kept, and one line says so.
class LogOutlet final : public Outlet {
 public:
  /// @param observe  told by the thread how much is wanted, when that changes
  /// @param tick     called by the thread each time that it looks
  LogOutlet(std::function<void(Depth depth)> observe, std::function<void()> tick)
      : observe_(std::move(observe)), tick_(std::move(tick)) {}
  ~LogOutlet() override;

  int joined(const plugin::ProfiledCommunicator& communicator) noexcept override;
  void left(const plugin::ProfiledCommunicator& communicator) noexcept override;
  std::optional<Flight> enter(CallRecord& call, int place) noexcept override;
  void label(const LabelledCall& call) noexcept override;
  void leave(Flight flight, const CallRecord& call) noexcept override;
  void transfer(const TransferTiming& timing) noexcept override;
  void ownWork(const TransferTiming& timing) noexcept override { transfer(timing); }

 private:
  int keep(const plugin::ProfiledCommunicator& communicator);
  void open(const plugin::ProfiledCommunicator& first);
  void close();
  void watch();
  void look(std::uint64_t& next, IterationWatch& iterations);
  /// False: the thread is to end.
  bool rest();

  const std::function<void(Depth depth)> observe_;
  const std::function<void()> tick_;
  std::mutex mutex_;
  int communicators_ = 0;  // with mutex_
  std::unique_ptr<control::JobFiles> files_;
  std::atomic<instrument::CallLog*> log_{nullptr};
  std::atomic<bool> off_{false};
  std::mutex stopMutex_;
  std::condition_variable stopping_;
  bool stop_ = false;  // with stopMutex_
  std::thread thread_;
};

}  // namespace falcon::profiler
