#include "api/meeting.h"

#include "base/contained.h"
#include "base/library_thread.h"
#include "base/log.h"

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

void isNotWatched(const char* why) {
  log::notice("a communicator is not watched: {}", why);
}

}  // namespace

Meeting::Meeting(Join join) {
  contained([&] { thread_ = libraryThread("nccl-falcon-set", [join = std::move(join), this] { run(join); }); },
            isNotWatched);
}

Meeting::~Meeting() {
  giveUpAt_.store(Nanoseconds::min());
  if (thread_.joinable()) thread_.join();
}

std::optional<Error> Meeting::isGivenUp() const {
  if (now() <= giveUpAt_.load()) return std::nullopt;
  return Error::remote("not all of its ranks came; is NCCL_FALCON=1 set for all of them?");
}

void Meeting::run(const Join& join) {
  const auto meet = [&] {
    auto network = join([this] { return isGivenUp(); });
    if (network) {
      network_ = std::move(*network);
      return;
    }
    if (giveUpAt_.load() == Nanoseconds::min()) return;  // nobody makes it any more
    const auto late = isGivenUp();
    if (late) someStayAway.store(true);
    isNotWatched((late ? *late : network.error()).message().c_str());
  };
  contained(meet, isNotWatched);
}

Meeting::Network Meeting::network() {
  giveUpAt_.store(now() + (someStayAway.load() ? briefPatience : patience));
  if (thread_.joinable()) thread_.join();
  return std::move(network_);
}

}  // namespace falcon::api
