// Who comes in at the listening socket: reads hellos, keeps those that came too early, hands each to whom it is for.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "transport/drop_log.h"
#include "transport/event_loop.h"
#include "transport/hello.h"

namespace falcon::transport {

/// expect() and forget() are thread-safe; the rest runs on the loop's thread.
class Reception : public std::enable_shared_from_this<Reception> {
 public:
  Reception(std::shared_ptr<EventLoop> loop, FileDescriptor listener);

  /// Whether it has what it needs to work.
  Status complete() const;
  void open();
  /// Afterwards nobody is let in, nobody waits. From any thread.
  void close();

  void expect(Purpose purpose, std::uint64_t key, const Secret& secret, Reactor::ConnectionHandler handler,
              std::string refusal);
  void forget(Purpose purpose, std::uint64_t key);

 private:
  using Instant = std::chrono::steady_clock::time_point;
  using Whom = std::pair<Purpose, std::uint64_t>;
  struct Newcomer {
    FileDescriptor socket;
    std::string address;
    HelloReader reader;
    Instant deadline;
  };
  struct Early {
    FileDescriptor socket;
    std::string address;
    Hello hello;
    Instant deadline;
  };
  struct Expectation {
    EventLoop::Token token = 0;
    Secret secret{};
    std::shared_ptr<Reactor::ConnectionHandler> handler;
    std::string refusal;  // for who does not know the secret
  };

  void acceptAll();
  bool admit(FileDescriptor socket, std::string address);
  bool hungry();
  bool turnAwayOne();
  void pauseAccepting();
  void listenAgain();
  void readFrom(int socket);
  void deliver(FileDescriptor socket, std::string address, Hello hello);
  void deliverEarly();
  void keep(Early early);
  void tick();
  // With mutex_ held.
  void resume();
  void sayDropped(const std::string& address, std::string_view reason);
  void setTicking(bool wanted);

  const std::shared_ptr<EventLoop> loop_;
  const FileDescriptor listener_;
  const FileDescriptor timer_;
  FileDescriptor spare_;                // given up for a moment to tell a peer that there is no descriptor for it
  std::optional<Instant> hungrySince_;  // no descriptor for a newcomer since then; the loop's thread only

  std::mutex mutex_;  // taken before the loop's, never after
  bool closed_ = false;
  bool paused_ = false;   // nobody is let in until the next tick
  bool crowded_ = false;  // or, if that is all, until many of those at the door have gone in
  bool ticking_ = false;
  DropLog dropLog_;
  std::map<int, Newcomer> newcomers_;
  std::list<Early> early_;
  std::map<Whom, Expectation> expectations_;
};

}  // namespace falcon::transport
