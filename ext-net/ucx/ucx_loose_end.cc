#include "ucx/ucx_loose_end.h"

#include "base/log.h"
#include "base/random.h"
#include "transport/handshake.h"
#include "ucx/ucx_connection.h"

namespace falcon::net {

Result<std::unique_ptr<LooseEnd>> UcxLooseEnd::make(ucp_context_h context, bool sends) {
  auto end = UcxEnd::make(context);
  if (!end) return end.error();
  auto address = (*end)->address();
  if (!address) return address.error();
  const auto tag = randomValue<std::uint64_t>();
  if (!tag) return log::decided(tag.error());
  UcxFacts facts = UcxFacts::ours();
  facts.firstTag = *tag;
  facts.address = std::move(*address);
  if (facts.text().size() > transport::maximumHelloPayload)
    return log::decided(
        Error::system("UCX needs {} bytes to say how a worker is reached, of {} that there are: let it use fewer "
                      "devices (UCX_NET_DEVICES) or transports (UCX_TLS)",
                      facts.address.size(), transport::maximumHelloPayload));
  return std::unique_ptr<LooseEnd>(std::make_unique<UcxLooseEnd>(std::move(*end), std::move(facts), sends));
}

Status UcxLooseEnd::connect(std::string_view facts, const std::string& peer) {
  const auto its = UcxFacts::read(facts);
  if (!its) return ofAnotherRelease(peer);
  if (its->major != ours_.major || its->minor != ours_.minor)
    return log::decided(Error::invalidUsage("{} has UCX {}.{}, and this process UCX {}.{}: all ranks need the same",
                                            peer, its->major, its->minor, ours_.major, ours_.minor));
  peer_ = peer;
  firstTag_ = sends_ ? its->firstTag : ours_.firstTag;
  return end_->connect(its->address, peer);
}

Result<bool> UcxLooseEnd::settle() {
  end_->progress();
  // Who receives has nothing to send before the sender is through.
  if (end_->failure() == UCS_OK) return !sends_ || end_->flush();
  return log::decided(Error::remote("UCX cannot connect to {}: {}", peer_, textOf(end_->failure())));
}

Result<std::unique_ptr<Connection>> UcxLooseEnd::begin(FileDescriptor socket, std::string peer) {
  return std::unique_ptr<Connection>(std::make_unique<UcxConnection>(std::move(end_), Farewell(std::move(socket)),
                                                                     sends_, firstTag_, std::move(peer)));
}

}  // namespace falcon::net
