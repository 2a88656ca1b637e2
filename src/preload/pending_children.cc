#include "preload/pending_children.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace falcon::preload {
namespace {

/// What stands at `address`, or null where nothing can be read any longer.
ncclComm_t readWithCare(ncclComm_t* address) {
  constexpr std::size_t bytes = sizeof(void*);  // of a handle, which is one
  ncclComm_t value = nullptr;
  const iovec to{&value, bytes}, from{address, bytes};
  return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == static_cast<ssize_t>(bytes) ? value : nullptr;
}

}  // namespace

void PendingChildren::add(Child child) {
  const std::lock_guard lock(mutex_);
  if (children_.size() == most) {
    children_.front().making->giveUp();
    children_.erase(children_.begin());
  }
  children_.push_back(std::move(child));
  count_ = static_cast<int>(children_.size());
}

std::optional<PendingChildren::Child> PendingChildren::take(ncclComm_t handle) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(children_.begin(), children_.end(),
                                  [&](const Child& each) { return readWithCare(each.output) == handle; });
  if (found == children_.end()) return std::nullopt;
  Child taken = std::move(*found);
  children_.erase(found);
  count_ = static_cast<int>(children_.size());
  return taken;
}

void PendingChildren::forgetAll() {
  new (&mutex_) std::mutex;  // it may have been locked in the parent
  count_ = 0;
  new (&children_) std::vector<Child>;  // no memory is taken for it, nor given back
}

}  // namespace falcon::preload
