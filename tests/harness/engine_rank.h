// A rank of the host engine over the real transport, for tests that fork.
#pragma once

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "bootstrap/communicator_network.h"
#include "bootstrap/make_unique_id.h"
#include "collectives/host_communicator.h"
#include "harness/forked_ranks.h"
#include "transport/reactor.h"

namespace falcon::test {

/// The value, or an exception that ends the rank with the error as its report.
template <class T>
T orThrow(Result<T> result, const char* what) {
  if (!result) throw std::runtime_error(std::string(what) + ": " + result.error().message());
  return std::move(*result);
}
inline void orThrow(const Status& status, const char* what) {
  if (!status) throw std::runtime_error(std::string(what) + ": " + status.error().message());
}

/// Joins the communicator with that number on the board; rank 0 makes its id.
inline std::unique_ptr<collectives::HostCommunicator> joinCommunicator(const SharedBoard& board, int number, Rank rank,
                                                                       int size, const EngineHooks& hooks = {}) {
  bootstrap::UniqueId id;
  if (rank == 0) {
    id = orThrow(bootstrap::makeUniqueId(), "makeUniqueId");
    const auto bytes = id.bytes();
    std::memcpy(board->ids[number], bytes.data(), bytes.size());
    board->published[number].store(1);
  } else {
    while (board->published[number].load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    id = orThrow(bootstrap::UniqueId::parse(std::span<const char, 128>(board->ids[number])), "UniqueId::parse");
  }
  auto reactor = orThrow(transport::processReactor(), "processReactor");
  auto network = orThrow(bootstrap::join(reactor, id, rank, size, std::chrono::seconds(60)), "join");
  return orThrow(
      collectives::HostCommunicator::create(reactor, std::move(network), 0, hooks, "extra of " + std::to_string(rank)),
      "HostCommunicator::create");
}

/// One call, not grouped.
inline Status run(Engine& engine, const Call& call) {
  return engine.run(call);
}

}  // namespace falcon::test
