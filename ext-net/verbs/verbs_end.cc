#include "verbs/verbs_end.h"

#include "verbs/verbs_receiver.h"
#include "verbs/verbs_sender.h"

namespace falcon::net {

Result<std::unique_ptr<LooseEnd>> VerbsEnd::make(VerbsPort& port, int device, bool sends) {
  auto pair = sends ? QueuePair::make(port, VerbsSender::sends, VerbsSender::receives)
                    : QueuePair::make(port, VerbsReceiver::sends, VerbsReceiver::receives);
  if (!pair) return pair.error();
  return std::unique_ptr<LooseEnd>(std::make_unique<VerbsEnd>(std::move(*pair), device, sends));
}

Status VerbsEnd::connect(std::string_view facts, const std::string& peer) {
  const auto its = EndFacts::read(facts);
  if (!its) return ofAnotherRelease(peer);
  return pair_->connect(*its);
}

Result<std::unique_ptr<Connection>> VerbsEnd::begin(FileDescriptor socket, std::string peer) {
  return sends_ ? VerbsSender::make(std::move(pair_), std::move(socket), device_, std::move(peer))
                : VerbsReceiver::make(std::move(pair_), std::move(socket), device_, std::move(peer));
}

}  // namespace falcon::net
