#include "api/meeting.h"

#include "base/contained.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "control/shown_join.h"
#include "transport/reactor.h"

namespace falcon::api {
namespace {

// All have come to the vendor's library by then, so they come here at once.
constexpr Nanoseconds patience = 5s;
// Where some rank has stayed away before, it may have Falcon off: no communicator waits for that long again.
constexpr Nanoseconds briefPatience = 250ms;
constinit std::atomic<bool> someStayAway{false};

Nanoseconds now() {
  return SystemClock::instance().now();
}

void notWatched(const char* why) {
  log::notice("a communicator is not watched: {}", why);
}

}  // namespace

Meeting::Meeting(const bootstrap::UniqueId& way, Rank rank, int size, instrument::Making making)
    : making_(std::move(making)) {
  contained([&] { thread_ = libraryThread("nccl-falcon-set", [=, this] { run(way, rank, size); }); }, notWatched);
}

Meeting::~Meeting() {
  waitUntil(Nanoseconds::min());
  if (thread_.joinable()) thread_.join();
}

void Meeting::run(const bootstrap::UniqueId& way, Rank rank, int size) {
  const auto isTimeUp = [&] { return now() > giveUpAt_.load(); };
  const auto meet = [&] {
    auto reactor = transport::processReactor();
    if (!reactor) return notWatched(reactor.error().message().c_str());
    if (size == 1) (*reactor)->forget(transport::Purpose::rendezvous, way.key);  // nobody else will come
    auto network =
        size == 1 ? bootstrap::aloneNetwork(way.key) : control::joinShown(*reactor, way, rank, size, making_, isTimeUp);
    if (network) {
      network_ = std::move(*network);
    } else if (giveUpAt_.load() == Nanoseconds::max()) {
      notWatched(network.error().message().c_str());
    } else if (giveUpAt_.load() != Nanoseconds::min()) {
      someStayAway.store(true);
      notWatched("not all of its ranks came; is NCCL_FALCON=1 set for all of them?");
    }
  };
  contained(meet, notWatched);
}

Meeting::Network Meeting::network() {
  waitUntil(now() + (someStayAway.load() ? briefPatience : patience));
  if (thread_.joinable()) thread_.join();
  return std::move(network_);
}

}  // namespace falcon::api
