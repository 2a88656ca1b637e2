// Who waits for senders that must know something of its end first (loose_end.h).
#pragma once

#include <list>
#include <memory>

#include "core/doorman.h"
#include "core/loose_end.h"

namespace falcon::net {

/// A connection is had when who has come, and has proven that it belongs to the job (doorman.h), says that it is ready.
class MeetingListener final : public Listener {
 public:
  /// @param make  makes the receiving ends
  static Result<std::unique_ptr<Listener>> make(const SocketAddress& address, Handle handle, MakeLooseEnd make);
  MeetingListener(std::unique_ptr<Doorman> doorman, MakeLooseEnd make)
      : doorman_(std::move(doorman)), make_(std::move(make)) {}

  /// Errors as LooseEnd's: of one who has come, and is gone then.
  Result<std::unique_ptr<Connection>> accept() override;

 private:
  /// One that has our answer.
  struct Answered {
    std::unique_ptr<LooseEnd> end;
    FileDescriptor socket;
    std::string from;
    Nanoseconds since;
  };
  enum class Step { waits, ready, gone };

  /// Makes an end for it and answers.
  Status answer(Guest guest, Nanoseconds now);
  Step look(const Answered& one, Nanoseconds now);

  const std::unique_ptr<Doorman> doorman_;
  const MakeLooseEnd make_;
  std::list<Answered> answered_;
};

}  // namespace falcon::net
