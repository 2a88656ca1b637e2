// Where the ranks of a communicator-to-be meet: learns who they are, tells all of all, and is gone.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/clock.h"
#include "bootstrap/join_message.h"
#include "bootstrap/message_channel.h"
#include "bootstrap/unique_id.h"
#include "transport/alarm.h"

namespace falcon::bootstrap {

/// Belongs to the reactor it was opened on, which it keeps alive until all have got their answer or `limit` has passed.
/// The guests send one message when their communicator is formed: until then the death of one is told to the others.
class Rendezvous : public std::enable_shared_from_this<Rendezvous> {
 public:
  struct Opened {
    std::weak_ptr<Rendezvous> rendezvous;
    std::future<void> gone;  ///< ready when it is
  };
  static Opened open(std::shared_ptr<transport::Reactor> reactor, const UniqueId& id, Nanoseconds limit);
  /// Rank 0 of `size` does not take part: who is there, and who comes within 10 s, hears `why`, unless there is
  /// another reason already. Returns when that is said. From any thread but the reactor's.
  void rankZeroFailed(int size, const Error& why);
  /// Made by open().
  Rendezvous(std::shared_ptr<transport::Reactor> reactor, const UniqueId& id);
  ~Rendezvous();

 private:
  enum class Phase { collecting, told, failed };
  struct Guest {
    Rank rank;
    std::shared_ptr<MessageChannel> channel;
    bool isOwn = false;  // a rank of this process
  };

  void startTimer(Nanoseconds limit);
  /// From here on all but the reactor's thread leave it alone.
  void expectGuests();
  void alarmRings();
  void sayWhoIsMissing() const;
  void welcome(FileDescriptor socket, const transport::Hello& hello);
  void admit(int number, Rank rank, const JoinRequest& request);
  void tellAll();
  void fail(const Error& error);
  void refuse(const Guest& guest) const;
  std::string refusal(bool own) const;
  void guestFormed(int number);
  void guestGone(int number);
  void endIfDone();
  void end();

  const std::shared_ptr<transport::Reactor> reactor_;
  const UniqueId id_;
  std::unique_ptr<transport::Alarm> alarm_;
  std::promise<void> gone_;

  // The reactor's thread only.
  Phase phase_ = Phase::collecting;
  std::chrono::steady_clock::time_point end_;
  int size_ = 0;  // as the first one said
  int mostClaimed_ = 0;
  int nextGuest_ = 0;
  std::set<Rank> refused_;
  std::map<int, Guest> guests_;
  std::map<Rank, Member> known_;
  std::optional<Error> failure_;
};

}  // namespace falcon::bootstrap
