#include "bootstrap/pulse.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace falcon::bootstrap {

Pulse::Pulse(std::shared_ptr<transport::Reactor> reactor, FileDescriptor socket, std::function<void()> silent)
    : reactor_(std::move(reactor)), socket_(std::move(socket)) {
  reactor_->watch(socket_.get(), POLLIN,
                  [weak = std::weak_ptr(reactor_), number = socket_.get(), silent = std::move(silent)](short) {
                    int problem = 0;
                    socklen_t length = sizeof problem;
                    getsockopt(number, SOL_SOCKET, SO_ERROR, &problem, &length);
                    // It will not change any more.
                    if (const auto alive = weak.lock()) alive->unwatch(number);
                    if (problem == ETIMEDOUT || problem == EHOSTUNREACH || problem == ENETUNREACH) silent();
                  });
}

Pulse::~Pulse() {
  reactor_->unwatch(socket_.get());
}

}  // namespace falcon::bootstrap
