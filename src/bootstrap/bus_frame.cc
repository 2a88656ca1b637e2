#include "bootstrap/bus_frame.h"

#include "bootstrap/random.h"

namespace falcon::bootstrap {
namespace {

bool needsPeer(BusFrame::Kind kind) {
  using Kind = BusFrame::Kind;
  return kind == Kind::request || kind == Kind::welcome || kind == Kind::redirect || kind == Kind::joined ||
         kind == Kind::moveTo || kind == Kind::handOver;
}

}  // namespace

std::uint64_t busKey(const transport::Secret& secret, ProcessId target) {
  return hashOf({hashOf(std::string_view(reinterpret_cast<const char*>(secret.data()), secret.size())), target});
}

std::string packIds(const std::set<ProcessId>& ids) {
  WireWriter writer;
  for (const ProcessId id : ids) writer.put(id);
  return writer.take();
}

std::set<ProcessId> unpackIds(std::string_view bytes) {
  std::set<ProcessId> ids;
  WireReader reader(bytes);
  for (std::size_t left = bytes.size() / sizeof(ProcessId); left > 0; --left) ids.insert(reader.get<ProcessId>());
  return ids;
}

std::string BusFrame::encode() const {
  WireWriter writer;
  writer.put(kind).put(from).put(to).put(std::string_view(bytes)).put(static_cast<std::uint32_t>(peers.size()));
  for (const BusPeer& peer : peers) {
    writer.put(peer.id);
    write(writer, peer.address);
    write(writer, peer.secret);
  }
  write(writer, secret);
  return writer.take();
}

bool BusFrame::decode(std::string_view encoded, BusFrame& frame) {
  WireReader reader(encoded);
  frame.kind = reader.get<Kind>();
  frame.from = reader.get<ProcessId>();
  frame.to = reader.get<ProcessId>();
  frame.bytes = reader.getString();
  const auto count = reader.getCount(sizeof(ProcessId) + 1 + sizeof(transport::Secret));
  for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
    BusPeer peer;
    peer.id = reader.get<ProcessId>();
    peer.address = readAddress(reader);
    peer.secret = readSecret(reader);
    if (peer.address.empty()) return false;
    frame.peers.push_back(peer);
  }
  frame.secret = readSecret(reader);
  return reader.finished() && frame.kind <= Kind::handOver && (!needsPeer(frame.kind) || !frame.peers.empty());
}

std::string BusContact::encode() const {
  WireWriter writer;
  writer.put(process).put(controller);
  write(writer, processAddress);
  write(writer, controllerAddress);
  return writer.take();
}

Result<BusContact> BusContact::decode(std::string_view bytes) {
  WireReader reader(bytes);
  BusContact contact;
  contact.process = reader.get<ProcessId>();
  contact.controller = reader.get<ProcessId>();
  contact.processAddress = readAddress(reader);
  contact.controllerAddress = readAddress(reader);
  if (!reader.finished() || contact.processAddress.empty() || contact.controllerAddress.empty())
    return Error::remote("a member's place on the bus cannot be read");
  return contact;
}

}  // namespace falcon::bootstrap
