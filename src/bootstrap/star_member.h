// One rank's end of the star: waits for answers, keeps the failure, finds the next center when one's process has ended.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "bootstrap/member.h"
#include "bootstrap/message_channel.h"
#include "bootstrap/pulse.h"
#include "bootstrap/star_message.h"
#include "transport/alarm.h"
#include "transport/dialling.h"

namespace falcon::bootstrap {

/// Thread-safe. May end on the reactor's thread: whoever owns it says goodbye with leave() before.
class StarMember : public std::enable_shared_from_this<StarMember> {
 public:
  StarMember(std::shared_ptr<transport::Reactor> reactor, CommunicatorId id, const transport::Secret& secret, Rank rank,
             std::vector<Member> members);

  CommunicatorId id() const { return id_; }
  const transport::Secret& secret() const { return secret_; }
  Rank rank() const { return rank_; }
  const std::vector<Member>& members() const { return members_; }
  const std::shared_ptr<transport::Reactor>& reactor() const { return reactor_; }

  /// Returns when all members are connected. `givenUp` is asked now and then: an error there ends the wait.
  Status connect(Nanoseconds limit, const std::function<std::optional<Error>()>& givenUp);
  /// After connect() failed: rank 0's process hung up without a word. It does so when rank 0 has not called for long.
  bool turnedAway() const;
  /// Whether that member has said goodbye, as far as the center has told.
  bool hasLeft(Rank rank) const;
  /// Whom the center lives with; nothing while this rank has no connection with it.
  std::optional<Rank> center() const;
  Result<std::vector<std::string>> gather(std::string_view mine, Nanoseconds limit,
                                          const std::function<std::optional<Error>()>& givenUp);
  void abort(std::string_view reason);
  std::optional<Error> failure() const;
  bool isBroken() const { return failure_.load(std::memory_order_acquire) != nullptr; }
  void onFailure(std::function<void(const Error&)> handler);
  void onDeparture(std::function<void(Rank)> handler);
  /// Says goodbye and waits a moment for the answer, so that the end of this process is not taken for a death; not
  /// after waitForNobody().
  void leave();
  void waitForNobody() { waitsForNobody_.store(true, std::memory_order_relaxed); }
  /// Breaks it on this rank: the network does not work any more.
  void fail(Error error);

 private:
  using Lock = std::unique_lock<std::mutex>;

  void withdraw(const Error& why) const;
  void receive(std::string_view bytes);
  void noteDeparture(Lock lock, Rank rank);
  void closed(Rank center, const std::string& why);
  void runHandler();
  // On the reactor's thread.
  void startOver(std::shared_ptr<MessageChannel> channel);
  std::unique_ptr<Pulse> pulseOver(FileDescriptor socket);
  void findHeir();
  void dial(Rank heir, transport::Purpose purpose);
  void reached(Rank heir, transport::Purpose purpose, FileDescriptor socket);
  void missed(Rank heir);
  bool onReactorThread() const { return reactorThread_.load() == std::this_thread::get_id(); }
  std::string name(Rank rank) const { return nameOf(rank, members_); }

  const std::shared_ptr<transport::Reactor> reactor_;
  const CommunicatorId id_;
  const transport::Secret secret_;
  const Rank rank_;
  const std::vector<Member> members_;
  std::atomic<std::thread::id> reactorThread_{};

  std::mutex gatherMutex_;  // one gather at a time
  std::uint64_t sequence_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<MessageChannel> channel_;
  std::unique_ptr<Pulse> pulse_;                   // to the center; whom it lives with needs none
  Rank center_ = 0;                                // whom the center lives with
  bool inherited_ = false;                         // the first center has ended: nothing can be gathered any more
  std::shared_ptr<transport::Dialling> dialling_;  // to heirs
  std::unique_ptr<transport::Alarm> succession_;
  bool started_ = false;
  bool leaving_ = false;
  bool goodbyeDone_ = false;
  bool closed_ = false;
  bool turnedAway_ = false;
  std::map<std::uint64_t, StarMessage> answers_;
  std::set<Rank> left_;  // where center_ is among them, the end of its process is no death
  std::function<void(Rank)> departed_;

  std::unique_ptr<const Error> failureOwner_;
  std::atomic<bool> waitsForNobody_{false};
  std::atomic<const Error*> failure_{nullptr};
  std::function<void(const Error&)> handler_;
  std::thread::id handlerThread_{};  // while it runs
};

}  // namespace falcon::bootstrap
