// How the processes of a job talk about it: each connected part has one controller, everyone can reach it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/socket_address.h"
#include "transport/reactor.h"

namespace falcon::bootstrap {

/// Names a process on the bus: ordered by (job rank, random), so that the lowest rank becomes the controller.
using ProcessId = std::uint64_t;

/// One message, or news about who is there. Messages from one process arrive in order.
struct BusMessage {
  enum class Kind : std::uint8_t { text, joined, left, controllerChanged } kind = Kind::text;
  ProcessId from = 0;
  std::string bytes;
};

/// Thread-safe. Sending never blocks for long and never fails loudly: who is gone is told by `left`.
class Bus {
 public:
  virtual ~Bus() = default;
  virtual ProcessId self() const = 0;
  virtual ProcessId controller() const = 0;
  bool isController() const { return controller() == self(); }
  /// The processes of this part, as far as this process knows; complete on the controller. Includes self.
  virtual std::vector<ProcessId> members() const = 0;

  virtual void toController(std::string bytes) = 0;  ///< also from the controller to itself
  virtual void to(ProcessId process,
                  std::string bytes) = 0;     ///< controller to one; others: passed on by the controller
  virtual void toAll(std::string bytes) = 0;  ///< controller to all, itself included

  /// Everything that has arrived, waiting up to `limit` for the first. Called by one thread, the monitor's.
  virtual std::vector<BusMessage> take(Nanoseconds limit) = 0;
  /// Makes a take() return at once.
  virtual void wake() = 0;
};

/// What members of a communicator tell each other at init so that their buses can join. Goes through allGather as
/// bytes.
struct BusContact {
  ProcessId process = 0;
  ProcessId controller = 0;
  SocketAddress processAddress;
  SocketAddress controllerAddress;
  std::string encode() const;
  static Result<BusContact> decode(std::string_view bytes);
};

/// The bus inside the library: a star of sockets around the controller's reactor (Redis comes later).
class EmbeddedBus : public Bus {
 public:
  virtual BusContact contact() const = 0;
  /// A communicator was formed with these processes: the lowest controller wins, the other part hands over. `secret` is
  /// the communicator's: connections between the parts prove themselves with it.
  virtual void meet(const std::vector<BusContact>& members, const transport::Secret& secret) = 0;
};

/// `jobRank` -1: unknown. Errors (system): the kernel gives no secret.
Result<std::shared_ptr<EmbeddedBus>> makeEmbeddedBus(std::shared_ptr<transport::Reactor> reactor, Rank jobRank);

}  // namespace falcon::bootstrap
