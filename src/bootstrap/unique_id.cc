#include "bootstrap/unique_id.h"

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "bootstrap/member.h"
#include "bootstrap/random.h"

namespace falcon::bootstrap {
namespace {

constexpr std::uint64_t magic = 0x31444946'4c43464eULL;
constexpr std::uint16_t version = 3;

}  // namespace

std::array<char, 128> UniqueId::bytes(std::uint64_t seal) const {
  WireWriter writer;
  writer.put(magic).put(version);
  write(writer, address);
  writer.put(key);
  write(writer, secret);
  writer.put(hostMemory);
  writer.put(hashOf(std::string_view(writer.bytes())) ^ seal);
  std::array<char, 128> bytes{};
  std::copy(writer.bytes().begin(), writer.bytes().end(), bytes.begin());
  return bytes;
}

bool UniqueId::isOne(std::span<const char, 128> bytes) {
  WireReader reader(std::string_view(bytes.data(), bytes.size()));
  return reader.get<std::uint64_t>() == magic;
}

Result<UniqueId> UniqueId::read(std::span<const char, 128> bytes, std::uint64_t seal) {
  WireReader reader(std::string_view(bytes.data(), bytes.size()));
  const bool ours = reader.get<std::uint64_t>() == magic;
  const auto itsVersion = reader.get<std::uint16_t>();
  if (ours && itsVersion != version)
    return Error::invalidArgument(
        "this unique id has version {}, this library makes and reads version {}: do all ranks load the same library?",
        itsVersion, version);
  UniqueId id;
  id.address = readAddress(reader);
  id.key = reader.get<std::uint64_t>();
  id.secret = readSecret(reader);
  id.hostMemory = reader.get<bool>();
  WireWriter again;
  again.put(magic).put(version);
  write(again, id.address);
  again.put(id.key);
  write(again, id.secret);
  again.put(id.hostMemory);
  const bool whole = reader.get<std::uint64_t>() == (hashOf(std::string_view(again.bytes())) ^ seal);
  if (!ours || !whole || !reader.ok() || id.address.empty())
    return Error::invalidArgument(
        "this unique id was not made by ncclGetUniqueId of this library, or was damaged on its way to this rank");
  return id;
}

Result<UniqueId> UniqueId::parse(std::span<const char, 128> bytes) {
  auto id = read(bytes);
  if (!id) return log::decided(id.error());
  return id;
}

}  // namespace falcon::bootstrap
