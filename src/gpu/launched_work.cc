#include "gpu/launched_work.h"

#include <exception>

namespace falcon::gpu {
namespace {

// An application that makes streams without end leaves marks behind: then those that are done go.
constexpr std::size_t manyStreams = 64;

}  // namespace

// Events that are left are the driver's to free: at the end of a process it may be gone already.
MarkedWork::~MarkedWork() = default;

void MarkedWork::note(void* stream) noexcept try {
  if (nothingToMark_.load(std::memory_order_relaxed)) return;
  std::call_once(looked_, [this] {
    driver_ = findDriver_();
    events_ = driver_ ? driver_->streamEvents() : nullptr;
  });
  if (!events_) return nothingToMark_.store(true, std::memory_order_relaxed);
  auto mark = takeMark(stream);
  mark.mapped() = events_->record(stream, mark.mapped());
  const std::lock_guard lock(mutex_);
  --out_;
  if (mark.mapped()) marks_.insert(std::move(mark));
} catch (const std::exception&) {
  // No memory: the work counts as done.
}

/// The stream's, or an empty one.
MarkedWork::Marks::node_type MarkedWork::takeMark(void* stream) {
  bool many = false;
  {
    const std::lock_guard lock(mutex_);
    many = marks_.size() >= manyStreams;
    if (const auto known = marks_.find(stream); known != marks_.end()) {
      ++out_;
      return marks_.extract(known);
    }
  }
  if (many) isDone();
  Marks fresh;
  const auto empty = fresh.emplace(stream, nullptr);
  const std::lock_guard lock(mutex_);
  ++out_;
  return fresh.extract(empty);
}

bool MarkedWork::isDone() {
  Marks asked;
  std::size_t taken = 0;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(marks_);
    out_ += taken = asked.size();
  }
  std::erase_if(asked, [this](const auto& mark) {
    if (!events_->isDone(mark.second)) return false;
    events_->free(mark.second);
    return true;
  });
  const std::lock_guard lock(mutex_);
  out_ -= taken;
  marks_.merge(asked);
  return marks_.empty() && out_ == 0;
}

}  // namespace falcon::gpu
