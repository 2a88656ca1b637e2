// The sending end of a connection over verbs: message_wire.h says how.
#pragma once

#include "verbs/verbs_connection.h"

namespace falcon::net {

class VerbsSender final : public VerbsConnection {
 public:
  /// What the queue pair of such an end must have room for.
  static constexpr std::uint32_t sends = 128, receives = transport::net::mostRequests;

  /// @param pair  connected already. Error (system): the device refuses.
  static Result<std::unique_ptr<Connection>> make(std::unique_ptr<QueuePair> pair, FileDescriptor socket, int device,
                                                  std::string peerName);
  ~VerbsSender() override { cut(); }

 private:
  using VerbsConnection::VerbsConnection;

  void added() override;
  Status onCompletion(const ibv_wc& completion) override;
  Status postReceive(std::size_t place);
  Status take(std::size_t place, std::uint32_t bytes);
  /// Gives the device pieces, as long as there are adverts and room.
  Status post();
  Status postPiece(VerbsRequest& message, const Advert& advert);
  void noteWait();

  std::array<Advert, receives> inbox_{};
  std::unique_ptr<VerbsMemory> inboxMemory_;
  std::array<Advert, receives> adverts_{};  // of messages from nextToGive_ on
  std::uint64_t advertised_ = 0;            // messages whose adverts have come
  std::uint64_t nextToGive_ = 0;            // the first message of which the device does not have all pieces yet
  std::size_t nextPiece_ = 0;               // of that
  std::uint64_t firstOpen_ = 0;             // the first that is not done
  std::uint32_t atDevice_ = 0;              // pieces
};

}  // namespace falcon::net
