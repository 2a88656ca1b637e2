#include "verbs/end_facts.h"

#include <cstring>

#include "base/wire.h"

namespace falcon::net {
namespace {

constexpr std::uint32_t magic = 0x31425646;  // "FVB1"

}  // namespace

std::string EndFacts::text() const {
  WireWriter writer;
  writer.put(magic).put(linkLayer).put(mtu).put(lid).put(pair).put(firstPacket);
  for (const std::uint8_t byte : gid.raw) writer.put(byte);
  return writer.take();
}

std::optional<EndFacts> EndFacts::read(std::string_view text) {
  WireReader reader(text);
  EndFacts facts;
  const auto its = reader.get<std::uint32_t>();
  facts.linkLayer = reader.get<std::uint8_t>();
  facts.mtu = reader.get<std::uint8_t>();
  facts.lid = reader.get<std::uint16_t>();
  facts.pair = reader.get<std::uint32_t>();
  facts.firstPacket = reader.get<std::uint32_t>();
  for (std::uint8_t& byte : facts.gid.raw) byte = reader.get<std::uint8_t>();
  const bool isSound = reader.finished() && its == magic && facts.mtu >= IBV_MTU_256 && facts.mtu <= IBV_MTU_4096 &&
                       facts.pair < 1u << 24 && facts.firstPacket < 1u << 24;
  return isSound ? std::optional(facts) : std::nullopt;
}

}  // namespace falcon::net
