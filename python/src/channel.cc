#include "channel.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "library.h"

namespace falcon::python {
namespace {

struct Message {
  std::int64_t tag;
  std::uintptr_t address;
  std::size_t bytes;
  std::shared_ptr<Completion> completion;
};

/// Nobody has asked for it yet.
struct Early {
  std::int64_t tag;
  std::vector<char> bytes;
};

constexpr std::size_t frameBytes = 4096;
struct Header {
  std::int64_t tag;
  std::uint64_t bytes;
};
constexpr std::size_t roomBytes = frameBytes - sizeof(Header);

template <class List>
auto withTag(List& list, std::int64_t tag) {
  return std::find_if(list.begin(), list.end(), [&](const auto& each) { return each.tag == tag; });
}

}  // namespace

/// The thread holds it, too: it may be stuck in the making of the communicator when the channel goes.
struct Channel::State {
  const ncclUniqueId id;
  const bool sending;
  const std::string name;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Message> posted;
  std::deque<Early> early;
  std::optional<std::string> closed;
  ncclComm_t comm = nullptr;
  bool started = false;
  bool calling = false;  ///< a call of the library is under way

  State(const ncclUniqueId& id, bool sending, std::string name) : id(id), sending(sending), name(std::move(name)) {}

  void serve();
  bool connect();
  std::optional<std::string> sendNext(Message& message);
  std::optional<std::string> receiveNext();
  std::optional<std::string> told(ncclResult_t result) const;
  void fail(const std::string& text);
  void complete(const Message& message, const char* from, std::size_t bytes);
  std::optional<std::string> mismatch(const Message& message, std::size_t bytes) const;

  alignas(64) std::array<char, frameBytes> frame{};
};

std::optional<std::string> Channel::State::told(ncclResult_t result) const {
  if (result == ncclSuccess) return {};
  return name + ": " + textOf(result);
}

/// With the lock held by nobody: ends all that is posted.
void Channel::State::fail(const std::string& text) {
  std::deque<Message> left;
  {
    const std::lock_guard lock(mutex);
    if (!closed) closed = text;
    left = std::exchange(posted, {});
  }
  for (const Message& message : left) message.completion->end(text);
}

bool Channel::State::connect() {
  ncclComm_t made = nullptr;
  const ncclResult_t result = library().ncclCommInitRank(&made, 2, id, sending ? 0 : 1);
  if (const auto error = told(result)) {
    fail(*error);
    return false;
  }
  const std::lock_guard lock(mutex);
  comm = made;
  return !closed;
}

std::optional<std::string> Channel::State::mismatch(const Message& message, std::size_t bytes) const {
  if (message.bytes == bytes) return {};
  return name + ": a message with tag " + std::to_string(message.tag) + " has " + std::to_string(bytes) +
         " bytes, but the tensor to receive it has " + std::to_string(message.bytes);
}

std::optional<std::string> Channel::State::sendNext(Message& message) {
  const Header header{message.tag, message.bytes};
  const char* const from = reinterpret_cast<const char*>(message.address);
  const std::size_t inside = std::min(message.bytes, roomBytes);
  std::memcpy(frame.data(), &header, sizeof header);
  if (inside > 0) std::memcpy(frame.data() + sizeof header, from, inside);
  const Library& nccl = library();
  if (auto error = told(nccl.ncclSend(frame.data(), frameBytes, ncclUint8, 1, comm, nullptr))) return error;
  if (message.bytes == inside) return {};
  return told(nccl.ncclSend(from + inside, message.bytes - inside, ncclUint8, 1, comm, nullptr));
}

std::optional<std::string> Channel::State::receiveNext() {
  const Library& nccl = library();
  if (auto error = told(nccl.ncclRecv(frame.data(), frameBytes, ncclUint8, 0, comm, nullptr))) return error;
  Header header{};
  std::memcpy(&header, frame.data(), sizeof header);
  const std::size_t inside = std::min<std::size_t>(header.bytes, roomBytes);
  std::optional<Message> wanted;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = withTag(posted, header.tag); found != posted.end()) {
      wanted = std::move(*found);
      posted.erase(found);
    }
  }
  const auto wrong = wanted ? mismatch(*wanted, header.bytes) : std::nullopt;
  std::vector<char> kept(wanted && !wrong ? 0 : header.bytes);
  char* const to = wanted && !wrong ? reinterpret_cast<char*>(wanted->address) : kept.data();
  if (inside > 0) std::memcpy(to, frame.data() + sizeof header, inside);
  if (header.bytes > inside) {
    const auto result = nccl.ncclRecv(to + inside, header.bytes - inside, ncclUint8, 0, comm, nullptr);
    if (auto error = told(result)) {
      if (wanted) wanted->completion->end(error);
      return error;
    }
  }
  if (wanted) {
    wanted->completion->end(wrong);
    return {};
  }
  std::unique_lock lock(mutex);
  // It may have been asked for meanwhile.
  const auto late = withTag(posted, header.tag);
  if (late == posted.end()) {
    early.push_back({header.tag, std::move(kept)});
    return {};
  }
  const Message message = std::move(*late);
  posted.erase(late);
  lock.unlock();
  complete(message, kept.data(), kept.size());
  return {};
}

void Channel::State::complete(const Message& message, const char* from, std::size_t bytes) {
  auto wrong = mismatch(message, bytes);
  if (!wrong && bytes > 0) std::memcpy(reinterpret_cast<void*>(message.address), from, bytes);
  message.completion->end(std::move(wrong));
}

void Channel::State::serve() {
  bool working = connect();
  while (working) {
    std::optional<Message> next;
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return closed || !posted.empty(); });
      if (closed) break;
      calling = true;
      if (sending) {
        next = std::move(posted.front());
        posted.pop_front();
      }
    }
    const auto error = sending ? sendNext(*next) : receiveNext();
    {
      const std::lock_guard lock(mutex);
      calling = false;
    }
    if (next) next->completion->end(error);
    if (error) {
      fail(*error);
      working = false;
    }
  }
  ncclComm_t mine = nullptr;
  {
    const std::lock_guard lock(mutex);
    mine = std::exchange(comm, nullptr);
  }
  fail(name + ": closed");
  if (mine) library().ncclCommDestroy(mine);
}

Channel::Channel(const std::string& id, bool sending, std::string name) {
  ncclUniqueId unique{};
  std::memcpy(unique.internal, id.data(), std::min(id.size(), sizeof unique.internal));
  state_ = std::make_shared<State>(unique, sending, std::move(name));
}

Channel::~Channel() {
  close(state_->name + ": the process group was destroyed");
}

std::shared_ptr<Completion> Channel::post(std::int64_t tag, std::uintptr_t address, std::size_t bytes) {
  Message message{tag, address, bytes, std::make_shared<Completion>()};
  const auto completion = message.completion;
  std::unique_lock lock(state_->mutex);
  if (state_->closed) {
    completion->end(*state_->closed);
    return completion;
  }
  if (!state_->sending) {
    if (const auto found = withTag(state_->early, tag); found != state_->early.end()) {
      const Early kept = std::move(*found);
      state_->early.erase(found);
      lock.unlock();
      state_->complete(message, kept.bytes.data(), kept.bytes.size());
      return completion;
    }
  }
  state_->posted.push_back(std::move(message));
  state_->changed.notify_all();
  if (!std::exchange(state_->started, true))
    std::thread([state = state_] {
      pthread_setname_np(pthread_self(), "nccl-falcon-msg");
      state->serve();
    }).detach();
  return completion;
}

void Channel::close(const std::string& text) {
  {
    const std::lock_guard lock(state_->mutex);
    if (!state_->closed) state_->closed = text;
    // Only where something waits: what was sent may still be on its way to the other end. The thread frees it with the
    // lock's leave only.
    if (state_->calling && state_->comm) library().ncclCommRevoke(state_->comm, NCCL_REVOKE_DEFAULT);
    state_->changed.notify_all();
  }
  state_->fail(text);
}

}  // namespace falcon::python
