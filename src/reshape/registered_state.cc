#include "reshape/registered_state.h"

#include <algorithm>

namespace falcon::reshape {
namespace {

bool isName(std::string_view name) {
  return !name.empty() && name.size() <= RegisteredState::longestName &&
         std::all_of(name.begin(), name.end(), [](char each) { return each > ' ' && each < '\x7f'; });
}

}  // namespace

std::size_t bytesOf(std::span<const StateBuffer> buffers) {
  std::size_t bytes = 0;
  for (const StateBuffer& buffer : buffers) bytes += buffer.bytes;
  return bytes;
}

Status RegisteredState::add(const StateBuffer& buffer) {
  if (!isName(buffer.name))
    return Error::invalidArgument(
        "a state's name has {} characters; it is 1 to {} visible ASCII characters without blanks", buffer.name.size(),
        longestName);
  if (!buffer.data || buffer.bytes == 0)
    return Error::invalidArgument("the state {} is {} bytes at {}; there is nothing to keep", buffer.name, buffer.bytes,
                                  static_cast<const void*>(buffer.data));
  const std::lock_guard lock(mutex_);
  for (const StateBuffer& each : buffers_)
    if (each.name == buffer.name)
      return Error::invalidArgument("a state named {} is registered already; unregister it first", buffer.name);
  buffers_.push_back(buffer);
  std::sort(buffers_.begin(), buffers_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return {};
}

Status RegisteredState::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(buffers_, [&](const StateBuffer& each) { return each.name == name; }) > 0) return {};
  return Error::invalidArgument("no state named {} is registered", name);
}

std::vector<StateBuffer> RegisteredState::buffers(bool replicated) const {
  const std::lock_guard lock(mutex_);
  std::vector<StateBuffer> chosen;
  for (const StateBuffer& each : buffers_)
    if (each.replicated == replicated) chosen.push_back(each);
  return chosen;
}

std::vector<StateBuffer> RegisteredState::buffers() const {
  const std::lock_guard lock(mutex_);
  return buffers_;
}

void RegisteredState::replace(std::vector<StateBuffer> buffers) {
  std::sort(buffers.begin(), buffers.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const std::lock_guard lock(mutex_);
  buffers_ = std::move(buffers);
}

std::size_t RegisteredState::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytesOf(buffers_);
}

bool RegisteredState::empty() const {
  const std::lock_guard lock(mutex_);
  return buffers_.empty();
}

}  // namespace falcon::reshape
