// Who comes in at the listening socket: has everybody prove that it knows the secret of whom it comes for, and hands it
// over. Who comes before it is expected waits, within limits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "transport/drop_log.h"
#include "transport/event_loop.h"
#include "transport/handshake.h"

namespace falcon::transport {

/// expect() and forget() are thread-safe; the rest runs on the loop's thread.
///
/// Nobody here has proven itself, so their number and their time are bounded. How long somebody has waited is counted
/// in the ticks of that thread: while it gets no processor, nobody ages. And who gets none may be silent for any time
/// between connecting and its first byte, so a newcomer loses its place early only where another needs it. Whoever
/// loses it before it was challenged comes again (connectWithHello, LocalPorts, BusNode): that costs it a moment.
class Reception : public std::enable_shared_from_this<Reception> {
 public:
  Reception(std::shared_ptr<EventLoop> loop, FileDescriptor listener);

  /// Whether it has what it needs to work.
  Status complete() const;
  void open();
  /// Afterwards nobody is let in, nobody waits. From any thread.
  void close();

  void expect(Purpose purpose, std::uint64_t key, const Secret& secret, Reactor::ConnectionHandler handler);
  void forget(Purpose purpose, std::uint64_t key);
  /// A second has passed for who waits. The timer says so; tests may, too.
  void tick();

 private:
  using Tick = std::uint64_t;
  using Whom = std::pair<Purpose, std::uint64_t>;
  enum class Stage {
    silent,      ///< has not said for whom it comes
    early,       ///< nobody expects it yet
    challenged,  ///< has to prove itself
  };
  struct Newcomer {
    FileDescriptor socket;
    std::string address;
    Challenge challenge;
    Stage stage = Stage::silent;
    Tick since = 0;          ///< in this stage
    bool usesSpare = false;  ///< there is no descriptor for it: it is let in to be told so
  };
  using Newcomers = std::map<int, Newcomer>;
  struct Expectation {
    EventLoop::Token token = 0;
    Secret secret{};
    std::shared_ptr<Reactor::ConnectionHandler> handler;
  };

  void acceptAll();
  bool admit(FileDescriptor socket, std::string address, bool usesSpare);
  bool full();
  bool makeRoom();
  bool over(Tick since, int limit) const { return ticks_ > since + static_cast<Tick>(limit); }
  bool hungry(int problem);
  bool turnAwayOne();
  void pauseAccepting(bool crowded);
  void listenAgain();
  void readFrom(int socket);
  void deliver(FileDescriptor socket, const std::string& address, Hello hello);
  void challengeEarly();
  // With mutex_ held.
  void resume();
  Newcomers::iterator silentForTooLong();
  void opened(Newcomers::iterator newcomer);
  void challenge(Newcomers::iterator newcomer, const Secret& secret);
  void makeRoomForEarly();
  /// It has been in its stage for longer than anybody may.
  bool isOverdue(const Newcomer& newcomer) const;
  Newcomer take(Newcomers::iterator newcomer);
  void drop(Newcomers::iterator newcomer, std::string_view reason);
  void end(Newcomer newcomer);
  std::size_t earlyOnes() const;
  void sayDropped(const std::string& address, std::string_view reason);
  void setTicking(bool wanted);

  const std::shared_ptr<EventLoop> loop_;
  const FileDescriptor listener_;
  const FileDescriptor timer_;
  FileDescriptor spare_;  // given up for a moment to tell a peer that there is no descriptor for it; with mutex_ held
  // The loop's thread only.
  Tick ticks_ = 0;
  std::optional<Tick> hungrySince_;  // no descriptor for a newcomer since then

  std::mutex mutex_;  // taken before the loop's, never after
  bool closed_ = false;
  bool paused_ = false;   // nobody is let in until the next tick
  bool crowded_ = false;  // or, if that is all, until many of those at the door have gone in
  bool ticking_ = false;
  DropLog dropLog_;
  Newcomers newcomers_;
  std::map<Whom, Expectation> expectations_;
};

}  // namespace falcon::transport
