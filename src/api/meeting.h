// The ranks of a communicator of the vendor's meet in Falcon's network while the vendor's library makes it.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "bootstrap/communicator_network.h"
#include "bootstrap/unique_id.h"
#include "instrument/making.h"

namespace falcon::api {

/// Begins with the object, on a thread of its own. Whatever fails there is told, and leaves the communicator unwatched.
class Meeting {
 public:
  using Network = std::shared_ptr<bootstrap::CommunicatorNetwork>;

  /// @param making  how far it is shows there; may be of nobody
  Meeting(const bootstrap::UniqueId& way, Rank rank, int size, instrument::Making making);
  /// Gives up, unless network() was called.
  ~Meeting();
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;

  /// The vendor's communicator is made, so all have been there: waits a moment for those who have not come here. Null:
  /// not all do.
  Network network();

 private:
  void run(const bootstrap::UniqueId& way, Rank rank, int size);
  void waitUntil(Nanoseconds time) { giveUpAt_.store(time); }

  instrument::Making making_;
  std::atomic<Nanoseconds> giveUpAt_{Nanoseconds::max()};
  Network network_;  ///< written by the thread
  std::thread thread_;
};

}  // namespace falcon::api
