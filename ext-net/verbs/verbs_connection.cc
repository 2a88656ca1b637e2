#include "verbs/verbs_connection.h"

#include <utility>

#include "base/log.h"
#include "base/system_error.h"
#include "verbs/completion_error.h"

namespace falcon::net {
namespace {

constexpr Nanoseconds watchInterval = 100ms;
/// A peer that has all that it wants hangs up, perhaps before our device has its last acknowledgement.
constexpr Nanoseconds endingLimit = 1s;
constexpr std::size_t completionsAtOnce = 32;

}  // namespace

Result<bool> VerbsRequest::test(std::size_t& bytes) {
  return connection->test(*this, bytes);
}

VerbsConnection::VerbsConnection(std::unique_ptr<QueuePair> pair, FileDescriptor socket, int device, bool sends,
                                 std::string peerName)
    : pair_(std::move(pair)),
      lifeline_(std::move(socket)),
      access_(sends ? 0 : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ),
      peerName_(std::move(peerName)),
      record_({.device = device, .sends = sends, .sockets = 1, .peer = peerName_},
              [this, sends](falconNetConnection_v1& reading) {
                if (sends) times_.read(reading);
              }) {}

Result<void*> VerbsConnection::registerMemory(void* data, std::size_t bytes, int kind) {
  if (kind != transport::net::hostMemory)
    return log::decided(
        Error::internal("memory of kind {} is registered by its DMA buffer only: the properties say so", kind));
  auto memory = pair_->port().registerMemory(data, bytes, access_);
  if (!memory) return memory.error();
  return memory->release();
}

Result<void*> VerbsConnection::registerDmaBuffer(void* data, std::size_t bytes, int, std::uint64_t offset, int file) {
  auto memory = pair_->port().registerDmaBuffer(data, bytes, offset, file, access_);
  if (!memory) return memory.error();
  return memory->release();
}

Status VerbsConnection::check(const void* data, std::size_t bytes, const VerbsMemory* memory) {
  if (bytes == 0) return {};
  if (!memory)
    return log::decided(
        Error::invalidUsage("a message of {} bytes at {} has no mark of registered memory", bytes, data));
  if (!memory->holds(data, bytes))
    return log::decided(
        Error::invalidUsage("a message of {} bytes at {} lies outside of its registered memory", bytes, data));
  return {};
}

Result<Request*> VerbsConnection::start(void* data, std::size_t bytes, void* mark) {
  if (failure_) return *failure_;
  VerbsRequest& slot = request(added_);
  if (slot.isUsed) return nullptr;
  // Nobody may be testing anything, so nobody else makes room.
  if (!hasRoom())
    if (const Status moved = progress(); !moved) return moved.error();
  if (!hasRoom()) return nullptr;
  const auto* memory = static_cast<const VerbsMemory*>(mark);
  if (const Status lies = check(data, bytes, memory); !lies) return lies.error();
  slot = {};
  slot.connection = this;
  slot.data = static_cast<std::byte*>(data);
  slot.memory = bytes > 0 ? memory : nullptr;
  slot.room = bytes;
  slot.isUsed = true;
  ++added_;
  record_.counter().began(bytes, clock().now());
  added();  // what fails now is told by test(), where NCCL looks for it
  return &slot;
}

Result<bool> VerbsConnection::test(VerbsRequest& request, std::size_t& bytes) {
  if (!request.isDone) {
    if (const Status moved = progress(); !moved) return moved.error();
    if (!request.isDone) return false;
  }
  bytes = request.size;
  request.isUsed = false;
  return true;
}

Status VerbsConnection::progress() {
  if (failure_) return *failure_;
  std::array<ibv_wc, completionsAtOnce> completions;
  const auto count = pair_->poll(completions);
  if (!count) return fail(log::decided(count.error()));
  for (std::size_t i = 0; i < *count; ++i) {
    if (completions[i].status != IBV_WC_SUCCESS) return fail(log::decided(errorOf(completions[i], peerName_)));
    if (const Status taken = onCompletion(completions[i]); !taken) return taken;
  }
  return *count > 0 ? Status() : watch();
}

Status VerbsConnection::watch() {
  const Nanoseconds now = clock().now();
  if (now - lastWatch_ < watchInterval) return {};
  lastWatch_ = now;
  if (const Status sound = pair_->trouble(); !sound)
    return fail(log::decided(Error(
        sound.error().code(), fmt::format("the connection to {} is lost: {}", peerName_, sound.error().message()))));
  const auto problem = lifeline_.problem();
  if (!problem) return {};
  if (*problem == 0) {
    if (!hungUpSince_) hungUpSince_ = now;
    if (now - *hungUpSince_ < endingLimit) return {};
  }
  return fail(log::decided(Error::remote("the connection to {} is lost: {}", peerName_,
                                         *problem == 0 ? "it has hung up" : reasonOf(*problem))));
}

void VerbsConnection::done(VerbsRequest& request, std::size_t bytes) {
  request.size = bytes;
  request.isDone = true;
  if (!request.isFlush) record_.counter().done(request.room, bytes, clock().now());
}

Error VerbsConnection::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  return *failure_;
}

}  // namespace falcon::net
