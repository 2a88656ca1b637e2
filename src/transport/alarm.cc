#include "transport/alarm.h"

#include <poll.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "base/system_error.h"

namespace falcon::transport {

Alarm::Alarm(std::shared_ptr<Reactor> reactor, std::function<void()> ring)
    : reactor_(std::move(reactor)), timer_(newDescriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK))) {
  if (!timer_) {
    log::notice("there is no timer, so some time limits do not hold: {}", reasonOf(errno));
    return;
  }
  reactor_->watch(timer_.get(), POLLIN, [timer = timer_.get(), ring = std::move(ring)](short) {
    std::uint64_t times;
    // Nothing to read: it was set again since.
    if (::read(timer, &times, sizeof times) == sizeof times) ring();
  });
}

Alarm::~Alarm() {
  if (timer_) reactor_->unwatch(timer_.get());
}

void Alarm::set(Nanoseconds fromNow) {
  const auto count = std::max<std::int64_t>(1, fromNow.count());  // zero would mean never
  itimerspec when{};
  when.it_value.tv_sec = count / 1'000'000'000;
  when.it_value.tv_nsec = count % 1'000'000'000;
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace falcon::transport
