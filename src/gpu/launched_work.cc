#include "gpu/launched_work.h"

#include <exception>
#include <utility>

namespace falcon::gpu {
namespace {

// An application that makes streams without end leaves marks behind: then those that are done go.
constexpr std::size_t manyStreams = 64;

}  // namespace

// Events that are left are the driver's to free: at the end of a process it may be gone already.
MarkedWork::~MarkedWork() = default;

void MarkedWork::note(void* stream) noexcept try {
  if (nothingToMark_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(looked_, true)) {
    driver_ = findDriver_();
    events_ = driver_ ? driver_->streamEvents() : nullptr;
  }
  if (!events_) return nothingToMark_.store(true, std::memory_order_relaxed);
  if (marks_.size() >= manyStreams && !marks_.contains(stream)) dropWhatIsDone();
  void*& mark = marks_[stream];
  mark = events_->record(stream, mark);
  if (!mark) marks_.erase(stream);
} catch (const std::exception&) {
  // No memory: the work counts as done.
}

bool MarkedWork::isDone() {
  const std::lock_guard lock(mutex_);
  dropWhatIsDone();
  return marks_.empty();
}

void MarkedWork::dropWhatIsDone() {
  std::erase_if(marks_, [this](const auto& mark) {
    if (!events_->isDone(mark.second)) return false;
    events_->free(mark.second);
    return true;
  });
}

}  // namespace falcon::gpu
