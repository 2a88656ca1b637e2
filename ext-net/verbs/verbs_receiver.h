// The receiving end of a connection over verbs: message_wire.h says how.
#pragma once

#include "verbs/flusher.h"
#include "verbs/verbs_connection.h"

namespace falcon::net {

class VerbsReceiver final : public VerbsConnection {
 public:
  /// What the queue pair of such an end must have room for.
  static constexpr std::uint32_t sends = transport::net::mostRequests, receives = transport::net::mostRequests;

  /// @param pair  connected already. Error (system): the device refuses.
  static Result<std::unique_ptr<Connection>> make(std::unique_ptr<QueuePair> pair, FileDescriptor socket, int device,
                                                  std::string peerName);
  ~VerbsReceiver() override;

  Result<Request*> flush(void* data, std::size_t bytes, void* mark) override;

 private:
  using VerbsConnection::VerbsConnection;

  /// The place of the next advert is no longer read by the device.
  bool hasRoom() const override { return added_ - advertsDone_ < outbox_.size(); }
  void added() override;
  Status onCompletion(const ibv_wc& completion) override;
  Status postReceive();
  Status take(const ibv_wc& completion);

  std::array<Advert, sends> outbox_{};
  std::unique_ptr<VerbsMemory> outboxMemory_;
  std::uint64_t advertsDone_ = 0;
  std::uint64_t firstOpen_ = 0;  // the first message that is not done
  std::array<VerbsRequest, transport::net::mostRequests> flushes_{};
  std::uint64_t flushesAdded_ = 0;
  std::unique_ptr<Flusher> flusher_;  // null: nothing of a GPU has come yet
};

}  // namespace falcon::net
