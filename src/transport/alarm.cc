#include "transport/alarm.h"

namespace falcon::transport {

Alarm::Alarm(std::shared_ptr<Reactor> reactor, std::function<void()> ring)
    : reactor_(std::move(reactor)), timer_(reactor_->addTimer(std::move(ring))) {}

Alarm::~Alarm() {
  reactor_->removeTimer(timer_);
}

void Alarm::set(Nanoseconds fromNow) {
  reactor_->setTimer(timer_, fromNow);
}

}  // namespace falcon::transport
