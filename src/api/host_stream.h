// Host streams: what ncclFalconStreamCreate makes, and how their handles are told from other streams.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "api/lane.h"
#include "api/stream_callback.h"
#include "control/job.h"

namespace falcon::api {

/// A lane with a thread that serves it.
class HostStream {
 public:
  /// Errors (system): no thread can be had.
  static Result<std::shared_ptr<HostStream>> start();
  /// No more work is taken. Returns when the thread has ended, or (work is left) leaves it to finish that by itself.
  void end();

  /// Blocks until all is done that was queued before. Gives the first error since the last time, and forgets it.
  /// Errors (invalidUsage): it is one of the stream's own callbacks that asks.
  Status synchronize();
  /// Queues a call of `callback`. Errors (invalidArgument): the stream was destroyed meanwhile.
  Status callBack(StreamCallback callback);
  /// inProgress, or the first error, or success.
  Status query() const;
  /// Where its threads may be held from now on; null: nowhere.
  void joinJob(const std::shared_ptr<control::Job>& job);

  Lane lane;

 private:
  std::thread thread_;
  std::thread::id threadId_;  ///< also after end()
  std::shared_ptr<control::Job> job() const;

  mutable std::mutex jobMutex_;
  std::weak_ptr<control::Job> job_;
};

/// What a pointer is that came where a stream is expected.
struct FoundStream {
  enum class Kind : std::uint8_t { host, destroyed, foreign };
  Kind kind = Kind::foreign;
  std::shared_ptr<HostStream> stream;  ///< Kind::host only
};

/// Makes it known under its address.
void addStream(std::shared_ptr<HostStream> stream);
/// Looks the pointer up; it may be anything. Streams from before a fork() are foreign.
FoundStream findStream(const void* handle);
/// Until there is one in this process, every stream is foreign: calls for the vendor's engine pay no more than this.
inline constinit std::atomic<bool> anyStreams{false};
inline bool wereAnyStreams() {
  return anyStreams.load(std::memory_order_acquire);
}
/// The same, and forgets it: from now on it is known as destroyed.
FoundStream removeStream(const void* handle);

}  // namespace falcon::api
