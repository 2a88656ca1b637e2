// Messages from one rank to another, matched by their tags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "completion.h"

namespace falcon::python {

/// One end of the way from one rank to another: a communicator of the two and a thread that works off what was posted,
/// so that no message waits for one of another rank, nor for one the other way. On the receiving side a message goes to
/// the oldest posted receive with its tag; one that nobody has asked for is kept until somebody does.
///
/// On the wire: a frame of fixed size (tag, size, and as much of the message as there is room for), then the rest.
/// Thread-safe; no function needs the interpreter's lock, and none blocks, but the destructor for a moment.
class Channel {
 public:
  /// `id`: of a communicator that only this channel's two ends use. `name`: for errors.
  Channel(const std::string& id, bool sending, std::string name);
  ~Channel();

  /// Memory must stay until it has ended.
  std::shared_ptr<Completion> post(std::int64_t tag, std::uintptr_t address, std::size_t bytes);
  /// Ends what is posted, and what will be, with that text.
  void close(const std::string& text);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace falcon::python
