#include "transport/window_thread.h"

#include <mutex>
#include <system_error>

#include "base/library_thread.h"
#include "base/log.h"
#include "base/per_process.h"

namespace falcon::transport {
namespace {

struct Current {
  std::mutex mutex;
  std::weak_ptr<WindowThread> thread;
};
constinit PerProcess<Current> current;

}  // namespace

Result<std::shared_ptr<WindowThread>> WindowThread::ofThisProcess() {
  Current& here = current.get();
  const std::lock_guard lock(here.mutex);
  if (auto running = here.thread.lock()) return running;
  auto loop = EventLoop::create();
  if (!loop) return loop.error();
  try {
    auto made = std::make_shared<WindowThread>(std::move(*loop));
    here.thread = made;
    return made;
  } catch (const std::system_error& problem) {
    return log::decided(Error::system("the thread for what other ranks write cannot be started: {}", problem.what()));
  }
}

WindowThread::WindowThread(std::shared_ptr<EventLoop> loop) : parts_(new Parts{std::move(loop), {}}) {
  parts_->thread = libraryThread("nccl-falcon-win", [loop = parts_->loop] { loop->run(); });
}

WindowThread::~WindowThread() {
  if (getpid() != process_) {
    // The thread and whoever holds its locks exist in the parent only: leave everything as it lies.
    static_cast<void>(parts_.release());
    return;
  }
  parts_->loop->stop();
  parts_->thread.join();
}

}  // namespace falcon::transport
