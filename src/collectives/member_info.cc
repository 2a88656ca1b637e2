#include "collectives/member_info.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/log.h"
#include "base/wire.h"

namespace falcon::collectives {

void write(WireWriter& writer, const MemberInfo& info) {
  writer.put(info.peer.address.empty() ? std::string() : info.peer.address.text()).put(info.peer.node);
  writer.put(info.peer.process).put(info.peer.doorbell).put(info.peer.jobRank);
  writer.put(info.host).put(info.pid).put(info.device).put(info.extra);
}

Result<MemberInfo> readMemberInfo(WireReader& reader) {
  MemberInfo info;
  const std::string address = reader.getString();
  info.peer.node = reader.getString();
  info.peer.process = reader.get<std::uint64_t>();
  info.peer.doorbell = reader.getString();
  info.peer.jobRank = reader.get<Rank>();
  info.host = reader.getString();
  info.pid = reader.get<int>();
  info.device = reader.get<int>();
  info.extra = reader.getString();
  if (!reader.ok()) return log::decided(Error::remote("a member of the communicator does not say who it is"));
  if (address.empty()) return info;
  const auto parsed = SocketAddress::parseNumeric(address);
  if (!parsed) return parsed.error();
  info.peer.address = *parsed;
  return info;
}

std::string MemberOffer::encode() const {
  WireWriter writer;
  write(writer, info);
  writer.put(chunkBytes).put(fewestChannels).put(mostChannels);
  writer.put(static_cast<std::uint8_t>(choseChannels)).put(cores.count).put(cores.first);
  writer.put(quota.cores).put(quota.group);
  for (const std::uint8_t mask : preferred.of) writer.put(mask);
  writer.put(tuning).put(static_cast<std::uint8_t>(checksCalls));
  writer.put(network).put(board).put(memory.process).put(memory.nonceAt).put(memory.nonce);
  return writer.take();
}

Result<MemberOffer> MemberOffer::decode(std::string_view bytes) {
  WireReader reader(bytes);
  MemberOffer offer;
  auto info = readMemberInfo(reader);
  if (!info) return info.error();
  offer.info = std::move(*info);
  offer.chunkBytes = reader.get<std::uint64_t>();
  offer.fewestChannels = reader.get<int>();
  offer.mostChannels = reader.get<int>();
  offer.choseChannels = reader.get<std::uint8_t>() != 0;
  offer.cores.count = reader.get<std::uint32_t>();
  offer.cores.first = reader.get<std::uint32_t>();
  offer.quota.cores = reader.get<double>();
  offer.quota.group = reader.get<std::uint64_t>();
  for (std::uint8_t& mask : offer.preferred.of) mask = reader.get<std::uint8_t>();
  offer.tuning = reader.getString();
  offer.checksCalls = reader.get<std::uint8_t>() != 0;
  offer.network = reader.getString();
  offer.board = reader.getString();
  offer.memory.process = reader.get<int>();
  offer.memory.nonceAt = reader.get<std::uint64_t>();
  offer.memory.nonce = reader.get<std::uint64_t>();
  if (!reader.finished() || offer.chunkBytes == 0 || offer.fewestChannels < 1 || offer.mostChannels < 1)
    return log::decided(
        Error::remote("a member of the communicator described itself in {} bytes that make no sense", bytes.size()));
  return offer;
}

std::vector<int> nodesOf(const std::vector<MemberInfo>& members) {
  std::vector<std::string_view> names;
  std::vector<int> nodes;
  for (const MemberInfo& member : members) {
    const auto known = std::find(names.begin(), names.end(), member.peer.node);
    nodes.push_back(static_cast<int>(known - names.begin()));
    if (known == names.end()) names.push_back(member.peer.node);
  }
  return nodes;
}

int countOfNodes(const std::vector<MemberInfo>& members) {
  const std::vector<int> nodes = nodesOf(members);
  return *std::max_element(nodes.begin(), nodes.end()) + 1;
}

bool shareNode(const std::vector<MemberOffer>& offers) {
  for (const MemberOffer& offer : offers)
    if (offer.info.peer.node != offers[0].info.peer.node || offer.info.peer.doorbell.empty()) return false;
  return true;
}

double mostRanksPerCore(const std::vector<MemberOffer>& offers) {
  std::map<std::tuple<std::string_view, std::uint32_t, std::uint32_t>, std::uint32_t> sharing;
  std::map<std::tuple<std::string_view, std::uint64_t>, std::uint32_t> ofQuota;
  double most = 0;
  for (const MemberOffer& offer : offers) {
    const auto ranks = ++sharing[{offer.info.peer.node, offer.cores.count, offer.cores.first}];
    most = std::max(most, static_cast<double>(ranks) / std::max(1U, offer.cores.count));
    if (offer.quota.cores > 0)
      most = std::max(most, ++ofQuota[{offer.info.peer.node, offer.quota.group}] / offer.quota.cores);
  }
  return most;
}

}  // namespace falcon::collectives
