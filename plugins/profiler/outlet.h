// Where what a profiler plugin observes goes.
#pragma once

#include "base/call.h"
#include "base/recorders.h"
#include "base/transfer.h"
#include "plugin/profiler/profiler_calls.h"

namespace falcon::profiler {

/// Told by the threads of NCCL that make calls or move data. Thread-safe.
class Outlet {
 public:
  virtual ~Outlet() = default;

  /// A communicator of this process. Gives where it is kept, for enter(); noPlace where it is not.
  virtual int joined(const plugin::ProfiledCommunicator& communicator) = 0;
  virtual void left(const plugin::ProfiledCommunicator& communicator) = 0;

  /// A call is handed to the device, and then has been: it is not done yet.
  virtual Flight enter(CallRecord& call, int place) noexcept = 0;
  virtual void label(const LabelledCall& call) noexcept = 0;
  virtual void leave(Flight flight, const CallRecord& call) noexcept = 0;

  /// A connection's, or a channel's own work: then `peer` is the rank itself, and there are no bytes.
  virtual void transfer(const TransferTiming& timing) noexcept = 0;
};

}  // namespace falcon::profiler
