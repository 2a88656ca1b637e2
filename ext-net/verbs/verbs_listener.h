// Who waits for senders over verbs.
#pragma once

#include <list>
#include <memory>

#include "core/doorman.h"
#include "core/network.h"
#include "verbs/queue_pair.h"

namespace falcon::net {

/// A connection is had when who has come, and has proven that it belongs to the job (core/doorman.h), says that it is
/// ready.
class VerbsListener final : public Listener {
 public:
  static Result<std::unique_ptr<Listener>> make(VerbsPort& port, int device, const SocketAddress& address,
                                                Handle handle);
  VerbsListener(VerbsPort& port, int device, std::unique_ptr<Doorman> doorman)
      : port_(port), device_(device), doorman_(std::move(doorman)) {}

  Result<std::unique_ptr<Connection>> accept() override;

 private:
  /// One that has our answer.
  struct Answered {
    std::unique_ptr<QueuePair> pair;
    FileDescriptor socket;
    std::string from;
    Nanoseconds since;
  };
  enum class Step { waits, ready, gone };

  /// Makes a queue pair for it and answers.
  Status answer(Guest guest, Nanoseconds now);
  Step look(const Answered& one, Nanoseconds now);

  VerbsPort& port_;
  const int device_;
  const std::unique_ptr<Doorman> doorman_;
  std::list<Answered> answered_;
};

}  // namespace falcon::net
