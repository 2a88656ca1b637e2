// One process's place on the embedded bus: a member of a part, or its controller, or on the way from one to another.
//
// Every process begins as the controller of a part of its own. A connection always goes from a member to its
// controller, and the controller is the lowest id of its part; so when parts meet, the higher controller asks the lower
// to be admitted, and then sends its members after (moveTo). A member that moves sends a mark behind its last message
// over the old way and holds back what follows until the mark has come around to it over the new: so messages stay in
// order.
//
// The controller vouches for the senders of what it passes on, since it knows whose each connection is: a frame that
// claims to be from somebody else is dropped.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "bootstrap/bus_frame.h"
#include "bootstrap/bus_inbox.h"
#include "bootstrap/bus_speakers.h"
#include "bootstrap/message_channel.h"
#include "transport/alarm.h"
#include "transport/handshake.h"

namespace falcon::bootstrap {

/// All on the reactor's thread, but for what says otherwise.
class BusNode : public std::enable_shared_from_this<BusNode> {
 public:
  BusNode(std::shared_ptr<transport::Reactor> reactor, ProcessId id, const transport::Secret& secret);
  /// Once, after construction.
  void open();
  void leave();

  /// To whom `frame.to` says, over as many hops as it takes.
  void route(BusFrame frame);
  void meet(const std::vector<BusContact>& contacts, const transport::Secret& secret);

  // From any thread.
  BusInbox& inbox() { return inbox_; }
  const BusPeer& self() const { return self_; }
  BusPeer controller() const;
  std::vector<ProcessId> members() const;
  bool onReactorThread() const { return reactorThread_.load() == std::this_thread::get_id(); }
  const std::shared_ptr<transport::Reactor>& reactor() const { return reactor_; }

 private:
  using Channel = std::shared_ptr<MessageChannel>;
  using Instant = std::chrono::steady_clock::time_point;
  using Kind = BusFrame::Kind;
  enum class Why { handOver, moveTo, lost };
  struct Attempt {  // to become a member elsewhere
    Why why = Why::handOver;
    BusPeer target{};
    transport::Secret secret{};
    ProcessId lost = 0;           // the controller that is gone
    std::set<ProcessId> tried{};  // in vain
    Instant deadline{};
    std::optional<Instant> again{};  // when to ask once more
    FileDescriptor socket{};         // while connecting
    std::optional<transport::Greeting> greeting{};
    Channel channel{};  // once connected
  };

  // bus_node.cc: membership and messages
  void expect(const transport::Secret& secret);
  Channel openChannel(FileDescriptor socket);
  void receive(const Channel& channel, std::string_view bytes);
  void closed(const Channel& channel);
  void fromController(BusFrame frame);
  void fromMember(ProcessId member, BusFrame frame);
  std::optional<ProcessId> memberAt(const Channel& channel) const;
  bool mayCome(ProcessId sender, ProcessId over) const;
  void sayForged(std::string_view what);
  void onMark(BusFrame frame);
  void arrived(BusFrame frame);
  void admitMember(const Channel& channel, const BusFrame& request);
  void memberGone(ProcessId id);
  void announceJoined(ProcessId id);
  void announceLeft(ProcessId id);
  void sendUp(BusFrame frame);
  void send(const Channel& channel, const BusFrame& frame);
  void toMembers(const BusFrame& frame, ProcessId except = 0);
  void publish();
  bool isController() const { return controller_.id == self_.id; }

  // bus_moves.cc: changing the controller
  void onRequest(const Channel& channel, const BusFrame& frame);
  void handOver(const BusPeer& target, const transport::Secret& secret);
  void nextHandOver();
  void begin(Attempt attempt);
  void dial();
  void connected();
  void challenged();
  void ask();
  void onAnswer(const BusFrame& frame);
  void onWelcome(const BusFrame& frame);
  void attemptFailed();
  void controllerLost();
  void elect(ProcessId lost, std::set<ProcessId> tried);
  void becomeController();
  void releaseHeld();
  void tick();

  const std::shared_ptr<transport::Reactor> reactor_;
  const BusPeer self_;
  BusInbox inbox_;
  std::atomic<std::thread::id> reactorThread_{};

  mutable std::mutex mutex_;  // what other threads read
  BusPeer publishedController_;
  std::vector<ProcessId> publishedMembers_;

  std::unique_ptr<transport::Alarm> alarm_;
  bool leaving_ = false;
  bool warnedFull_ = false;
  bool warnedForged_ = false;
  BusPeer controller_;
  std::map<ProcessId, BusPeer> peers_;     // of this part, self included
  std::set<ProcessId> announced_;          // as joined and not as left
  std::set<Channel> newcomers_;            // connected, not yet admitted
  std::map<ProcessId, Channel> links_;     // to my members
  std::map<ProcessId, Channel> oldLinks_;  // to those whom I sent elsewhere
  BusSpeakers speakers_;                   // over links_ and oldLinks_
  Channel up_;                             // to my controller
  Channel oldUp_;                          // to the one before, until the mark has come around
  bool holding_ = false;                   // between two controllers
  Instant holdUntil_{};
  std::deque<BusFrame> held_;
  std::size_t heldBytes_ = 0;
  std::optional<Attempt> attempt_;
  std::deque<std::pair<BusPeer, transport::Secret>> handOvers_;
  std::map<ProcessId, Instant> expectedBack_;  // members of a lost controller that have not come to me yet
  std::set<std::uint64_t> expectedKeys_;
};

}  // namespace falcon::bootstrap
