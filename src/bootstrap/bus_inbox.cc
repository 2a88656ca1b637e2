#include "bootstrap/bus_inbox.h"

#include <utility>

#include "base/log.h"

namespace falcon::bootstrap {
namespace {

constexpr std::size_t mostBytes = 32 << 20;

}  // namespace

void BusInbox::put(BusMessage message) {
  const std::lock_guard lock(mutex_);
  const std::size_t size = message.bytes.size() + sizeof message;
  if (message.kind == BusMessage::Kind::text && bytes_ + size > mostBytes) {
    if (!warned_) log::warn("messages on the bus are dropped: nobody took the last {} bytes", bytes_);
    warned_ = true;
    return;
  }
  bytes_ += size;
  messages_.push_back(std::move(message));
  changed_.notify_all();
}

std::vector<BusMessage> BusInbox::take(Nanoseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return woken_ || !messages_.empty(); });
  woken_ = false;
  bytes_ = 0;
  return std::exchange(messages_, {});
}

void BusInbox::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_all();
}

}  // namespace falcon::bootstrap
