// How far a rank has come in a communicator: the calls that it has entered, counted as every member counts them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/call.h"

namespace falcon {

/// Collectives are counted for the communicator, messages for each peer. Written by the thread that calls, of which a
/// communicator has one at a time; read by any.
class CallCounts {
  using Count = std::atomic<std::uint64_t>;

 public:
  CallCounts() = default;
  explicit CallCounts(int size)
      : size_(size), sent_(std::make_unique<Count[]>(size)), received_(std::make_unique<Count[]>(size)) {}

  int size() const { return size_; }
  std::uint64_t collectives() const { return collectives_.load(std::memory_order_relaxed); }
  std::uint64_t sentTo(Rank peer) const { return sent_[peer].load(std::memory_order_relaxed); }
  std::uint64_t receivedFrom(Rank peer) const { return received_[peer].load(std::memory_order_relaxed); }
  /// The number that this call gets in its series: among the collectives, or the messages to or from its peer. A call
  /// is here whatever has an `operation` and a `peer`.
  template <class AnyCall = Call>
  std::uint64_t next(const AnyCall& call) const {
    if (call.operation == Operation::send) return sentTo(call.peer);
    if (call.operation == Operation::receive) return receivedFrom(call.peer);
    return collectives();
  }
  /// A call was entered and has not been left.
  bool inside() const { return left_.load(std::memory_order_acquire) != begun_.load(std::memory_order_relaxed); }

  template <class AnyCall = Call>
  void enter(const AnyCall& call) noexcept {
    add(seriesOf(call), 1);
    add(begun_, 1);
  }
  /// It has not been entered after all.
  template <class AnyCall = Call>
  void takeBack(const AnyCall& call) noexcept {
    constexpr auto minusOne = static_cast<std::uint64_t>(-1);
    add(seriesOf(call), minusOne);
    add(begun_, minusOne);
  }
  void leave() noexcept { left_.store(left_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  static void add(Count& count, std::uint64_t number) noexcept {
    count.store(count.load(std::memory_order_relaxed) + number, std::memory_order_relaxed);
  }
  template <class AnyCall = Call>
  Count& seriesOf(const AnyCall& call) noexcept {
    if (call.operation == Operation::send) return sent_[call.peer];
    if (call.operation == Operation::receive) return received_[call.peer];
    return collectives_;
  }

  int size_ = 0;
  Count collectives_{0};
  std::unique_ptr<Count[]> sent_, received_;
  Count begun_{0}, left_{0};
};

/// What the application enters at once: a call, or an outermost group. It is held as a whole or not at all.
class CallEvent {
 public:
  /// Counts all its calls as entered, or takes that back.
  virtual void enter() noexcept = 0;
  virtual void takeBack() noexcept = 0;
  /// Nobody will enter it any more: it need not be held.
  virtual bool isCalledOff() const noexcept { return false; }

 protected:
  ~CallEvent() = default;
};

}  // namespace falcon
