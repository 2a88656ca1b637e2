// Hands events, one after the other, to a program on its stdin. Nothing here waits: a program that hangs is killed when
// its time is over, and meanwhile events queue up.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace falcon::watch {

using Time = std::chrono::steady_clock::time_point;

/// What is run for an event: a program and what it reads.
struct Delivery {
  std::vector<std::string> command;  ///< the first word is searched in PATH
  std::string input;
};
using MakeDelivery = std::function<Delivery(const std::string& eventLine)>;
/// Something went wrong with one event; one sentence.
using Complain = std::function<void(const std::string&)>;

struct HandlerRules {
  std::string name;  ///< "the command", for complaints
  std::chrono::milliseconds limit{10'000};
  std::size_t mostWaiting = 1000;  ///< of more, the oldest are dropped
};

class EventHandler {
 public:
  EventHandler(HandlerRules rules, MakeDelivery deliver, Complain complain);
  /// Kills what still runs.
  ~EventHandler();
  EventHandler(const EventHandler&) = delete;

  void add(const std::string& eventLine);
  /// Starts, reaps and kills, as `now` demands.
  void tick(Time now);
  bool idle() const { return process_ < 0 && waiting_.empty(); }
  int failures() const { return failures_; }

 private:
  void start(Time now);
  void fail(const std::string& what);
  void killAll() const;

  const HandlerRules rules_;
  const MakeDelivery deliver_;
  const Complain complain_;
  std::deque<std::string> waiting_;
  std::string current_;  ///< the event that the program has
  pid_t process_ = -1;   ///< leader of a process group of its own
  bool overdue_ = false;
  Time deadline_{};
  int failures_ = 0;
};

/// `sh -c command` with the event as one line on stdin, and its kind in FALCON_EVENT_KIND.
Delivery deliveryByShell(const std::string& command, const std::string& eventLine);
/// An HTTP POST by curl. The address goes by stdin: others on the host must not read a webhook's secret from the list
/// of processes.
Delivery deliveryByPost(const std::string& url, std::chrono::milliseconds limit, const std::string& eventLine);

}  // namespace falcon::watch
