// What both ends of a connection over verbs have in common.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "core/lifeline.h"
#include "core/net_state.h"
#include "core/network.h"
#include "verbs/message_wire.h"
#include "verbs/queue_pair.h"
#include "verbs/wait_times.h"

namespace falcon::net {

class VerbsConnection;

/// One of a connection's messages, or flushes.
struct VerbsRequest final : Request {
  Result<bool> test(std::size_t& bytes) override;

  VerbsConnection* connection = nullptr;
  std::byte* data = nullptr;
  const VerbsMemory* memory = nullptr;  ///< null: of a message of no bytes
  std::size_t room = 0;                 ///< bytes at `data`
  std::size_t size = 0;                 ///< of the message, once it is done
  bool isTooLong = false;               ///< of a send: the other end has less room
  bool isFlush = false;
  bool isUsed = false;
  bool isDone = false;
};

/// Used by one thread at a time.
class VerbsConnection : public Connection {
 public:
  /// Marks are VerbsMemory.
  Result<void*> registerMemory(void* data, std::size_t bytes, int kind) final;
  Result<void*> registerDmaBuffer(void* data, std::size_t bytes, int kind, std::uint64_t offset, int file) final;
  void deregisterMemory(void* mark) final { delete static_cast<VerbsMemory*>(mark); }
  Result<Request*> start(void* data, std::size_t bytes, void* mark) final;
  Result<bool> test(VerbsRequest& request, std::size_t& bytes);

 protected:
  /// @param device  its number; @param peerName  for messages
  VerbsConnection(std::unique_ptr<QueuePair> pair, FileDescriptor socket, int device, bool sends, std::string peerName);

  /// Whether one more message may be added now.
  virtual bool hasRoom() const { return true; }
  /// A message was added. What fails is kept by fail().
  virtual void added() = 0;
  /// Work is done that did not fail.
  virtual Status onCompletion(const ibv_wc& completion) = 0;

  /// Takes what has been done.
  Status progress();
  /// In the destructor of who owns memory that the device uses, before it goes.
  void cut() { pair_.reset(); }
  QueuePair& pair() { return *pair_; }
  const Clock& clock() const { return pair_->port().clock(); }
  const std::string& peerName() const { return peerName_; }
  WaitTimes& times() { return times_; }
  VerbsRequest& request(std::uint64_t number) { return requests_[number % requests_.size()]; }
  void done(VerbsRequest& request, std::size_t bytes);
  /// Where the message lies that is sent, or will come: not outside of the memory that was registered for it.
  Status check(const void* data, std::size_t bytes, const VerbsMemory* memory);
  Error fail(Error error);
  /// Messages that were added; their numbers are below.
  std::uint64_t added_ = 0;

 private:
  /// Looks for what no completion tells.
  Status watch();

  std::unique_ptr<QueuePair> pair_;
  const Lifeline lifeline_;
  const int access_;  // that registered memory is opened for
  const std::string peerName_;
  WaitTimes times_;
  ConnectionRecord record_;  // gone before the times, which it reads
  std::array<VerbsRequest, transport::net::mostRequests> requests_{};
  std::optional<Error> failure_;
  Nanoseconds lastWatch_{0};
  std::optional<Nanoseconds> hungUpSince_;
};

}  // namespace falcon::net
