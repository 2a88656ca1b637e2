// The ranks of a communicator of the vendor's meet in Falcon's network while the vendor's library makes it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "bootstrap/communicator_network.h"

namespace falcon::api {

/// Begins with the object, on a thread of its own: neither waits for the other, whichever of them another rank does
/// first. Whatever fails there is told, and leaves the communicator unwatched.
class Meeting {
 public:
  using Network = std::shared_ptr<bootstrap::CommunicatorNetwork>;
  /// Collective over the ranks that meet; null: this one has no part in what is made.
  using Join = std::function<Result<Network>(const bootstrap::GivenUp&)>;

  explicit Meeting(Join join);
  /// Gives up, unless network() was called.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// The vendor's communicator is made, so all have been there: waits a moment for those who have not come here. Null:
  /// not all do, or this rank has no part.
  Network network();

 private:
  void run(const Join& join);
  std::optional<Error> isGivenUp() const;

  std::atomic<Nanoseconds> giveUpAt_{Nanoseconds::max()};
  Network network_;  ///< written by the thread
  std::thread thread_;
};

}  // namespace falcon::api
