#include "collectives/member_agreement.h"

#include <algorithm>

#include "base/log.h"
#include "base/parameters.h"
#include "collectives/own_member_info.h"
#include "transport/chunk_size.h"

namespace falcon::collectives {
namespace {

// As NCCL has.
constexpr int mostChannelsEver = 64;

}  // namespace

Result<std::vector<MemberOffer>> exchangeOffers(transport::Reactor& reactor, bootstrap::CommunicatorNetwork& network,
                                                int device, std::string extra, const CommunicatorWish& wish,
                                                const NetworkChoice& choice, DirectSetup& direct) {
  auto info = ownMemberInfo(reactor, device, std::move(extra));
  if (!info) return info.error();
  MemberOffer mine;
  mine.info = std::move(*info);
  mine.chunkBytes = static_cast<std::uint64_t>(parameters::bufferSize.value()) / transport::chunkSlots;
  // Beyond the most channels that a variable may ask for there is nothing to gain.
  const auto chosen = [](const IntegerParameter& parameter, int wished) {
    const bool counts = wished > 0 && !parameter.isSet();
    return counts ? std::min(wished, mostChannelsEver) : static_cast<int>(parameter.value());
  };
  mine.fewestChannels = chosen(parameters::minChannels, wish.fewestChannels);
  mine.mostChannels = chosen(parameters::maxChannels, wish.mostChannels);
  // Who asks for many and sets no limit means it.
  if (wish.mostChannels <= 0 && !parameters::maxChannels.isSet())
    mine.mostChannels = std::max(mine.mostChannels, mine.fewestChannels);
  mine.choseChannels = wish.fewestChannels > 0 || wish.mostChannels > 0 || parameters::minChannels.isSet() ||
                       parameters::maxChannels.isSet();
  mine.cores = coresOfThisProcess();
  if (const auto quota = quotaOfThisProcess()) mine.quota = *quota;
  mine.preferred = preferencesFromEnvironment();
  if (network.rank() == 0 && network.size() > 1) mine.tuning = tuningTextFromEnvironment();
  mine.checksCalls = parameters::checkCalls.value();
  choice.offer(mine);
  direct.offer(mine);
  const auto gathered = network.allGather(mine.encode(), parameters::initTimeout.value());
  if (!gathered) return gathered.error();
  std::vector<MemberOffer> offers;
  for (const std::string& bytes : *gathered) {
    auto offer = MemberOffer::decode(bytes);
    if (!offer) return offer.error();
    offers.push_back(std::move(*offer));
  }
  return offers;
}

MemberShape agreedShape(const bootstrap::CommunicatorNetwork& network, const std::vector<MemberOffer>& offers) {
  MemberShape shape;
  shape.rank = network.rank();
  shape.size = network.size();
  shape.chunkBytes = offers[0].chunkBytes;
  shape.mostChannels = offers[0].mostChannels;
  shape.checksCalls = true;
  for (const MemberOffer& offer : offers) {
    shape.chunkBytes = std::min<std::size_t>(shape.chunkBytes, offer.chunkBytes);
    shape.mostChannels = std::min(shape.mostChannels, offer.mostChannels);
    shape.fewestChannels = std::max(shape.fewestChannels, offer.fewestChannels);
    shape.preferred = agreedPreferences(shape.preferred, offer.preferred);
    shape.checksCalls = shape.checksCalls && offer.checksCalls;
  }
  shape.extent = shareNode(offers) ? Extent::node : Extent::network;
  const bool chosen = std::any_of(offers.begin(), offers.end(), [](const auto& offer) { return offer.choseChannels; });
  // A second channel doubles the messages, and with them the switches between the ranks of a core: ring AllGather of
  // 1 MiB among 8 ranks on 2 cores 1.5 ms by one, 3.5 ms by two.
  if (!chosen && shape.extent == Extent::network && mostRanksPerCore(offers) > 2) shape.mostChannels = 1;
  shape.fewestChannels = std::min(shape.fewestChannels, shape.mostChannels);
  const auto chunkOf = [&](transport::Lane lane) {
    return transport::chunkBytesFor(lane, shape.chunkBytes * transport::chunkSlots, shape.size);
  };
  shape.messageChunkBytes = chunkOf(transport::Lane::peerToPeer);
  shape.directChunkBytes = chunkOf(transport::Lane::direct);
  if (!shape.checksCalls && parameters::checkCalls.value())
    log::notice("NCCL_FALCON_CHECK=1 has no effect: not all ranks of the communicator have it set");
  return shape;
}

Result<std::shared_ptr<const Tuning>> agreedTuning(const std::vector<MemberOffer>& offers, Extent extent) {
  if (offers[0].tuning.empty()) return std::shared_ptr<const Tuning>();
  auto tuning = parseTuning(offers[0].tuning, extent);
  if (tuning) {
    log::info("the algorithms follow rank 0's NCCL_FALCON_TUNING_FILE");
    return std::make_shared<const Tuning>(std::move(*tuning));
  }
  return log::decided(Error::remote(
      "rank 0's NCCL_FALCON_TUNING_FILE cannot be followed here: {}. Use the same library on every rank, or unset it",
      tuning.error().message()));
}

}  // namespace falcon::collectives
