#include "transport/reactor.h"

#include <cerrno>
#include <mutex>
#include <thread>

#include "base/library_thread.h"
#include "base/log.h"
#include "base/per_process.h"
#include "base/system_error.h"
#include "transport/event_loop.h"
#include "transport/fork_guard.h"
#include "transport/reception.h"

namespace falcon::transport {
namespace {

class ThreadedReactor final : public Reactor {
 public:
  ThreadedReactor(SocketAddress address, std::shared_ptr<EventLoop> loop, std::shared_ptr<Reception> reception)
      : address_(address), parts_(new Parts{std::move(loop), std::move(reception), {}}) {
    parts_->thread = libraryThread("nccl-falcon-io", [loop = parts_->loop] { loop->run(); });
    parts_->reception->open();
  }

  ~ThreadedReactor() override {
    // The thread and whoever holds its locks exist in the parent only: leave everything as it lies.
    if (forked()) static_cast<void>(parts_.release());
  }

  SocketAddress address() const override { return address_; }
  void expect(Purpose purpose, std::uint64_t key, const Secret& secret, ConnectionHandler handler) override {
    if (!forked()) parts_->reception->expect(purpose, key, secret, std::move(handler));
  }
  void forget(Purpose purpose, std::uint64_t key) override {
    if (!forked()) parts_->reception->forget(purpose, key);
  }
  void watch(int descriptor, short events, EventHandler handler) override {
    if (!forked()) parts_->loop->watch(descriptor, events, std::move(handler));
  }
  void unwatch(int descriptor) override {
    if (!forked()) parts_->loop->unwatch(descriptor);
  }
  std::uint64_t addTimer(std::function<void()> ring) override {
    return forked() ? 0 : parts_->loop->addTimer(std::move(ring));
  }
  void setTimer(std::uint64_t timer, Nanoseconds fromNow) override {
    if (!forked()) parts_->loop->setTimer(timer, fromNow);
  }
  void removeTimer(std::uint64_t timer) override {
    if (!forked()) parts_->loop->removeTimer(timer);
  }
  void post(std::function<void()> work) override {
    if (!forked()) parts_->loop->post(std::move(work));
  }

 private:
  struct Parts {
    const std::shared_ptr<EventLoop> loop;
    const std::shared_ptr<Reception> reception;
    std::thread thread;

    /// Also where the constructor throws after it has started the thread.
    ~Parts() {
      if (!thread.joinable()) return;
      const bool inside = loop->onOwnThread();
      reception->close();
      loop->stop();
      if (inside)
        thread.detach();  // it ends when it returns from us; the loop is its own
      else
        thread.join();
    }
  };

  bool forked() const { return getpid() != process_; }

  const pid_t process_ = getpid();
  const SocketAddress address_;
  std::unique_ptr<Parts> parts_;
};

Result<FileDescriptor> listen(const SocketAddress& wanted, bool* portTaken) {
  FileDescriptor listener = newDescriptor(socket(wanted.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (listener) setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listener || bind(listener.get(), wanted.get(), wanted.length()) != 0 || ::listen(listener.get(), 4096) != 0) {
    const int reason = errno;
    if (portTaken) *portTaken = reason == EADDRINUSE;
    const bool stays = reason == EADDRNOTAVAIL || reason == EACCES || reason == EAFNOSUPPORT;
    return Error(stays ? ErrorCode::invalidUsage : ErrorCode::system,
                 fmt::format("cannot listen on {}: {}", wanted.text(), reasonOf(reason)));
  }
  closeInForkedChildren(listener.get());
  return listener;
}

struct ProcessReactor {
  std::mutex mutex;
  std::weak_ptr<Reactor> reactor;
};

}  // namespace

Result<std::shared_ptr<Reactor>> makeReactor(const SocketAddress& listenOn, bool* portTaken) {
  if (portTaken) *portTaken = false;
  auto listener = listen(listenOn, portTaken);
  if (!listener) return listener.error();
  sockaddr_storage name{};
  socklen_t length = sizeof name;
  getsockname(listener->get(), reinterpret_cast<sockaddr*>(&name), &length);
  auto loop = EventLoop::create();
  if (!loop) return loop.error();
  auto reception = std::make_shared<Reception>(*loop, std::move(*listener));
  if (const Status whole = reception->complete(); !whole) return whole.error();
  try {
    return std::shared_ptr<Reactor>(std::make_shared<ThreadedReactor>(
        SocketAddress(reinterpret_cast<sockaddr*>(&name), length), *loop, std::move(reception)));
  } catch (const std::system_error& problem) {
    return log::decided(Error::system("the network thread cannot be started: {}", problem.what()));
  }
}

Result<std::shared_ptr<Reactor>> processReactor() {
  static constinit PerProcess<ProcessReactor> ofThisProcess;
  ProcessReactor& process = ofThisProcess.get();
  const std::lock_guard lock(process.mutex);
  if (auto known = process.reactor.lock()) return known;
  auto address = chooseInterfaceAddress();
  if (!address) return address.error();
  auto made = makeReactor(*address);
  if (!made) return log::decided(made.error());
  process.reactor = *made;
  return made;
}

}  // namespace falcon::transport
