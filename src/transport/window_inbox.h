// One rank's windows as ranks see them that cannot write into its memory: what they send over connections is put there,
// and their signals are counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "transport/reactor.h"
#include "transport/signal_kind.h"
#include "transport/window_thread.h"
#include "transport/window_wire.h"

namespace falcon::transport {

/// Thread-safe. Windows are numbered from 1 in the order in which the rank registers them. Ends before the memory of
/// the windows does, and before the reactor.
class WindowInbox {
 public:
  WindowInbox(std::shared_ptr<Reactor> reactor, CommunicatorId communicator, const Secret& secret, Rank self,
              int ranks);
  /// When it returns nobody writes any more.
  ~WindowInbox();
  WindowInbox(const WindowInbox&) = delete;

  /// This rank's next window, with its number; it can be written to from now on. bytes 0: it could not be registered,
  /// and who writes there is told.
  void openWindow(std::uint64_t number, const void* address, std::size_t bytes);
  /// When it returns nobody writes there any more.
  void closeWindow(std::uint64_t number);

  /// Signals of this kind so far.
  std::uint64_t signalsFrom(Rank from, int kind) const;
  /// A message of this rank to itself; nothing where the window is not registered yet.
  std::optional<WindowAnswer> takeOwn(const WindowHeader& header, const std::byte* from);

 private:
  struct Window {
    std::byte* address = nullptr;
    std::uint64_t bytes = 0;
  };
  /// A connection, and the message that is on its way over it.
  struct Writer {
    FileDescriptor socket;
    WindowHeader header{};
    std::size_t headerBytes = 0;        ///< of it that have come
    std::optional<WindowAnswer> known;  ///< what becomes of the message, as far as it is decided
    std::uint64_t taken = 0;            ///< of its bytes
    bool waits = false;                 ///< until the window is registered; meanwhile nothing is read
  };
  enum class Step { goesOn, nothingMore, ended };
  using Counts = std::array<std::uint64_t, signalKinds>;

  void welcome(FileDescriptor socket, const Hello& hello);
  void onReadable(Rank from);
  // With mutex_ held.
  void watch(Rank from, const Writer& writer);
  static bool isWhole(const Writer& writer);
  Step step(Rank from, Writer& writer);
  Step takeHeader(Rank from, Writer& writer);
  Step takeBytes(Writer& writer);
  Step answer(Rank from, Writer& writer);
  /// Without `room.data()` the bytes are dropped.
  Step readInto(Writer& writer, std::span<std::byte> room, std::size_t& got);
  bool resolve(Writer& writer) const;
  std::optional<WindowAnswer> verdictOn(const WindowHeader& header) const;
  std::byte* placeOf(const Writer& writer) const;
  void count(Rank from, std::uint32_t kind);

  const std::shared_ptr<Reactor> reactor_;
  const std::uint64_t key_;
  const int ranks_;
  const Rank self_;
  const pid_t process_;

  mutable std::mutex mutex_;
  bool closing_ = false;
  std::shared_ptr<WindowThread> thread_;  // once somebody has come
  std::uint64_t registered_ = 0;          // the last number
  std::map<std::uint64_t, Window> windows_;
  std::map<Rank, Writer> writers_;
  std::map<Rank, Counts> counts_;
};

/// Names the inbox of one rank of one communicator.
std::uint64_t windowKey(CommunicatorId communicator, Rank rank);

}  // namespace falcon::transport
