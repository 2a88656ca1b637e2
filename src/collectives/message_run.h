// Messages of one communicator that run by themselves, side by side: the short way of sends and receives.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/call.h"
#include "base/result.h"
#include "collectives/call_plan.h"
#include "transport/ports.h"

namespace falcon::collectives {

/// Used by one thread. Kept from call to call: it allocates nothing once it has run as many messages before. On the
/// wire it does what the algorithms of message.cc do, so that the other end may go either way.
class MessageRun {
 public:
  /// Forgets what was there before. Ports outlive the run.
  void begin(transport::Ports& ports);
  /// Send or receive, with another rank. Those to one peer keep their order, and those from one.
  Status add(const MemberShape& shape, const Call& call);
  /// The messages of AllToAll, Gather and Scatter; the rank's own part is copied at once.
  Status addExchange(const MemberShape& shape, const Call& call);

  /// Does what can be done now, but only so much that others get their turn; true if anything moved. Errors: remote,
  /// invalidUsage where the sizes at both ends differ.
  Result<bool> progress();
  bool finished() const { return messages_.empty(); }
  /// What would change it after nothing moved. Until the next call.
  std::span<const transport::WaitSource> waitSources();

 private:
  struct Message {
    Rank peer = -1;
    transport::SendPort* out = nullptr;    // one of the two
    transport::ReceivePort* in = nullptr;  // the other is null
    std::span<const std::byte> from;
    std::span<std::byte> to;
    std::size_t chunkBytes = 0;
    std::size_t done = 0;  // bytes handed to the port or taken from it
    std::size_t bytes() const { return out ? from.size() : to.size(); }
    bool finished() const { return done == bytes() && (!out || out->flushed()); }
  };

  Status addSend(Rank peer, int channel, std::span<const std::byte> from, std::size_t chunkBytes);
  Status addReceive(Rank peer, int channel, std::span<std::byte> to, std::size_t chunkBytes);
  void push(const Message& message);
  bool waitsForAnEarlierOne(const Message& message) const;
  Result<bool> progress(Message& message);
  Result<bool> sendChunk(Message& message);
  Result<bool> receiveChunk(Message& message);

  transport::Ports* ports_ = nullptr;
  std::vector<Message> messages_;  // unfinished ones, in the order of add()
  std::vector<transport::WaitSource> sources_;
};

}  // namespace falcon::collectives
