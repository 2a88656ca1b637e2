#include "transport/dialling.h"

#include <poll.h>

#include "base/log.h"
#include "transport/connect.h"

namespace falcon::transport {
namespace {

constexpr Nanoseconds pauseLength = 50ms;
constexpr Nanoseconds longest = 60s;

}  // namespace

Dialling::~Dialling() {
  std::map<Number, Attempt> attempts;
  std::unique_ptr<Alarm> alarm;
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    attempts.swap(attempts_);
    // Of who is being told just now nothing is known here any more.
    told_.wait(lock, [&] { return !telling_; });
    alarm = std::move(alarm_);
  }
  alarm.reset();
  // The sockets stay open until nobody watches them: their numbers must not become somebody else's before.
  for (const auto& [number, attempt] : attempts) reactor_->unwatch(attempt.socket->get());
}

Status Dialling::begin(std::vector<Call> calls) {
  std::vector<Attempt> begun;
  for (Call& call : calls) {
    auto socket = beginConnect(reactor_->address(), call.to);
    if (!socket) return log::decided(socket.error());
    Greeting greeting(call.hello);
    begun.push_back({std::move(call), std::make_shared<FileDescriptor>(std::move(*socket)), std::move(greeting),
                     std::chrono::steady_clock::now()});
  }
  const std::lock_guard lock(mutex_);
  for (Attempt& attempt : begun) {
    const auto made = attempts_.emplace(++last_, std::move(attempt)).first;
    watch(made->first, made->second);
  }
  return {};
}

void Dialling::watch(Number number, const Attempt& attempt) {
  reactor_->watch(attempt.socket->get(), POLLOUT, [this, number](short) { onConnected(number); });
}

Dialling::Call Dialling::end(std::map<Number, Attempt>::iterator attempt) {
  Call call = std::move(attempt->second.call);
  attempts_.erase(attempt);
  return call;
}

template <typename Tell>
void Dialling::tell(std::unique_lock<std::mutex>& lock, const Tell& caller) {
  telling_ = true;
  lock.unlock();
  caller();
  lock.lock();
  telling_ = false;
  told_.notify_all();
}

void Dialling::fail(Number number, const Error& error) {
  std::unique_lock lock(mutex_);
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  reactor_->unwatch(found->second.socket->get());
  const Call call = end(found);
  tell(lock, [&] { call.failed(Error(error.code(), fmt::format("{}: {}", call.peerName, error.message()))); });
}

void Dialling::onConnected(Number number) {
  const Status opened = [&]() -> Status {
    const std::lock_guard lock(mutex_);
    const auto found = attempts_.find(number);
    if (found == attempts_.end()) return {};
    Attempt& attempt = found->second;
    const int socket = attempt.socket->get();
    if (Status done = finishConnect(socket, attempt.call.to, attempt.call.hello.purpose, attempt.greeting); !done)
      return done;
    reactor_->watch(socket, POLLIN, [this, number](short) { onChallenge(number); });
    return {};
  }();
  if (!opened) fail(number, opened.error());
}

void Dialling::onChallenge(Number number) {
  std::unique_lock lock(mutex_);
  const auto found = attempts_.find(number);
  if (found == attempts_.end()) return;
  Attempt& attempt = found->second;
  switch (attempt.greeting.read(attempt.socket->get())) {
    case Greeting::Progress::incomplete:
      return;
    case Greeting::Progress::complete: {
      const SharedSocket socket = attempt.socket;
      reactor_->unwatch(socket->get());
      const Call call = end(found);
      return tell(lock, [&] { call.proven(socket); });
    }
    case Greeting::Progress::failed: {
      const Error error = attempt.greeting.error();
      lock.unlock();
      return fail(number, error);
    }
    case Greeting::Progress::turnedAway:
      if (std::chrono::steady_clock::now() - attempt.begun >= longest) {
        lock.unlock();
        return fail(number, Error::remote("it closed a new connection: it left or never opened this communicator"));
      }
      reactor_->unwatch(attempt.socket->get());
      turnedAway_.push_back(number);
      if (!alarm_) alarm_ = std::make_unique<Alarm>(reactor_, [this] { again(); });
      alarm_->set(pauseLength);
  }
}

void Dialling::again() {
  std::vector<std::pair<Number, Error>> failed;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    for (const Number number : std::exchange(turnedAway_, {})) {
      const auto found = attempts_.find(number);
      if (found == attempts_.end()) continue;
      Attempt& attempt = found->second;
      auto socket = beginConnect(reactor_->address(), attempt.call.to);
      if (!socket) {
        failed.emplace_back(number, socket.error());
        continue;
      }
      attempt.socket = std::make_shared<FileDescriptor>(std::move(*socket));
      attempt.greeting = Greeting(attempt.call.hello);
      watch(number, attempt);
    }
  }
  for (const auto& [number, error] : failed) fail(number, error);
}

}  // namespace falcon::transport
