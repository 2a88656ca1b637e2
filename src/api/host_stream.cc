#include "api/host_stream.h"

#include <algorithm>
#include <deque>
#include <map>
#include <system_error>

#include "base/library_thread.h"
#include "base/log.h"
#include "base/per_process.h"

namespace falcon::api {
namespace {

// Destroyed streams whose addresses are kept from being used again, so that they are known for what they are.
constexpr std::size_t rememberedStreams = 256;

struct Registry {
  std::mutex mutex;
  std::map<const void*, std::shared_ptr<HostStream>> live;
  std::deque<std::shared_ptr<HostStream>> destroyed;
};
constinit PerProcess<Registry> registry;

FoundStream find(const Registry& known, const void* handle) {
  if (const auto live = known.live.find(handle); live != known.live.end())
    return {FoundStream::Kind::host, live->second};
  const bool destroyed = std::any_of(known.destroyed.begin(), known.destroyed.end(),
                                     [&](const auto& stream) { return stream.get() == handle; });
  return {destroyed ? FoundStream::Kind::destroyed : FoundStream::Kind::foreign, nullptr};
}

}  // namespace

Result<std::shared_ptr<HostStream>> HostStream::start() {
  auto stream = std::make_shared<HostStream>();
  try {
    stream->thread_ = libraryThread("nccl-falcon-str", [stream] { stream->lane.serve(); });
    stream->threadId_ = stream->thread_.get_id();
  } catch (const std::system_error& error) {
    return log::decided(Error::system("a thread for a host stream cannot be started: {}", error.what()));
  }
  return stream;
}

void HostStream::end() {
  const bool idle = lane.empty();
  lane.close();
  if (idle)
    thread_.join();
  else
    thread_.detach();
}

std::shared_ptr<control::Job> HostStream::job() const {
  const std::lock_guard lock(jobMutex_);
  return job_.lock();
}

Status HostStream::synchronize() {
  if (std::this_thread::get_id() == threadId_)
    return log::decided(
        Error::invalidUsage("ncclFalconStreamSynchronize: a callback of this stream would wait for itself: let the "
                            "thread that wants to know wait"));
  const auto inJob = job();
  lane.wait(inJob ? inJob->hooks().hold : nullptr);
  if (auto error = lane.takeError()) return *error;
  return {};
}

Status HostStream::callBack(StreamCallback callback) {
  if (queueCallback(lane, callback)) return {};
  return log::decided(Error::invalidArgument("ncclFalconStreamCallback: the stream was destroyed meanwhile"));
}

Status HostStream::query() const {
  if (!lane.empty()) {
    // As where one asks how far a nonblocking call is.
    if (const auto inJob = job()) inJob->hooks().hold->noteCall(HoldPoint::resting);
    return Error(ErrorCode::inProgress, "the stream has work left");
  }
  if (auto error = lane.error()) return *error;
  return {};
}

void HostStream::joinJob(const std::shared_ptr<control::Job>& job) {
  const std::lock_guard lock(jobMutex_);
  job_ = job;
}

void addStream(std::shared_ptr<HostStream> stream) {
  Registry& known = registry.get();
  const std::lock_guard lock(known.mutex);
  const void* handle = stream.get();
  known.live.emplace(handle, std::move(stream));
  anyStreams.store(true, std::memory_order_release);
}

FoundStream findStream(const void* handle) {
  if (!wereAnyStreams()) return {};
  Registry& known = registry.get();
  const std::lock_guard lock(known.mutex);
  return find(known, handle);
}

FoundStream removeStream(const void* handle) {
  Registry& known = registry.get();
  const std::lock_guard lock(known.mutex);
  FoundStream found = find(known, handle);
  if (found.kind != FoundStream::Kind::host) return found;
  known.live.erase(handle);
  known.destroyed.push_back(found.stream);
  if (known.destroyed.size() > rememberedStreams) known.destroyed.pop_front();
  return found;
}

}  // namespace falcon::api
