// Who comes in at the listening socket: reads hellos, keeps those that came too early, hands each to whom it is for.
#pragma once

#include <cstdint>
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
///
/// How long somebody has waited is counted in the ticks of that thread: while it gets no processor, nobody ages. And
/// who gets none may be silent for any time between connecting and its first byte, so a newcomer loses its place only
/// where another needs it.
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
  /// A second has passed for who waits. The timer says so; tests may, too.
  void tick();

 private:
  using Tick = std::uint64_t;
  using Whom = std::pair<Purpose, std::uint64_t>;
  struct Newcomer {
    FileDescriptor socket;
    std::string address;
    HelloReader reader;
    Tick since = 0;
  };
  struct Early {
    FileDescriptor socket;
    std::string address;
    Hello hello;
    Tick since = 0;
  };
  struct Expectation {
    EventLoop::Token token = 0;
    Secret secret{};
    std::shared_ptr<Reactor::ConnectionHandler> handler;
    std::string refusal;  // for who does not know the secret
  };

  void acceptAll();
  bool admit(FileDescriptor socket, std::string address);
  bool full();
  bool makeRoom();
  bool over(Tick since, int limit) const { return ticks_ > since + static_cast<Tick>(limit); }
  bool hungry(int problem);
  bool turnAwayOne();
  void pauseAccepting(bool crowded);
  void listenAgain();
  void readFrom(int socket);
  void deliver(FileDescriptor socket, std::string address, Hello hello);
  void deliverEarly();
  void keep(Early early);
  // With mutex_ held.
  void resume();
  std::map<int, Newcomer>::iterator silentForTooLong();
  bool anybodyAges() const;
  void sayDropped(const std::string& address, std::string_view reason);
  void setTicking(bool wanted);

  const std::shared_ptr<EventLoop> loop_;
  const FileDescriptor listener_;
  const FileDescriptor timer_;
  FileDescriptor spare_;  // given up for a moment to tell a peer that there is no descriptor for it
  // The loop's thread only.
  Tick ticks_ = 0;
  std::optional<Tick> hungrySince_;  // no descriptor for a newcomer since then

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
