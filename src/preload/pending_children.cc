#include "preload/pending_children.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace falcon::preload {
namespace {

/// What stands at `address`; nothing where that can be read no longer.
std::optional<ncclComm_t> readWithCare(ncclComm_t* address) {
  constexpr std::size_t bytes = sizeof(void*);  // of a handle, which is one
  ncclComm_t value = nullptr;
  const iovec to{&value, bytes}, from{address, bytes};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) return std::nullopt;
  return value;
}

}  // namespace

void PendingChildren::add(PendingChild child) {
  const std::lock_guard lock(mutex_);
  if (children_.size() == most) {
    children_.front().making->lose();
    children_.erase(children_.begin());
  }
  children_.push_back(std::move(child));
  count_ = static_cast<int>(children_.size());
}

/// Whatever is still to be written, or will never be found.
void PendingChildren::look() {
  std::erase_if(children_, [](PendingChild& child) {
    if (child.making->hasEnded()) return true;
    if (child.handle) return false;
    const auto written = readWithCare(child.output);
    if (written) child.handle = *written;
    if (!written) child.making->lose();
    return !written;
  });
}

std::optional<PendingChild> PendingChildren::take(ncclComm_t handle) {
  if (!handle) return std::nullopt;
  const std::lock_guard lock(mutex_);
  look();
  const auto found =
      std::find_if(children_.begin(), children_.end(), [&](const PendingChild& each) { return each.handle == handle; });
  std::optional<PendingChild> taken;
  if (found != children_.end()) {
    taken = std::move(*found);
    children_.erase(found);
  }
  count_ = static_cast<int>(children_.size());
  return taken;
}

void PendingChildren::forgetAll() {
  new (&mutex_) std::mutex;  // it may have been locked in the parent
  count_ = 0;
  new (&children_) std::vector<PendingChild>;  // no memory is taken for it, nor given back
}

}  // namespace falcon::preload
