#include "transport/plugin/net_snapshot.h"

#include <algorithm>
#include <cstring>

#include "base/wire.h"
#include "transport/plugin/net_directory.h"

namespace falcon::transport::net {
namespace {

constexpr std::uint32_t magic = 0x464e5331;  // its last byte is the version of the file

template <class State>
std::optional<std::vector<State>> all(int (*read)(State* states, std::uint32_t room, std::uint32_t* count)) {
  std::uint32_t count = 0;
  if (!read || read(nullptr, 0, &count) != 0) return std::nullopt;
  std::vector<State> states(count);
  if (read(states.data(), count, &count) != 0) return std::nullopt;
  states.resize(std::min<std::size_t>(states.size(), count));  // some may have been closed meanwhile
  return states;
}

template <class State>
void put(WireWriter& to, const std::vector<State>& states) {
  to.put(static_cast<std::uint32_t>(states.size()));
  to.put(std::string_view(reinterpret_cast<const char*>(states.data()), states.size() * sizeof(State)));
}

template <class State>
bool get(WireReader& from, std::vector<State>& states) {
  const auto count = from.get<std::uint32_t>();
  const std::string bytes = from.getString();
  if (!from.ok() || bytes.size() != std::size_t{count} * sizeof(State)) return false;
  states.resize(count);
  if (count > 0) std::memcpy(states.data(), bytes.data(), bytes.size());
  return true;
}

/// Whoever wrote the file: its texts end.
template <std::size_t size>
void endText(char (&text)[size]) {
  text[size - 1] = 0;
}

}  // namespace

std::optional<NetSnapshot> netSnapshot() {
  return processNets().snapshot();
}

std::optional<NetSnapshot> snapshotOf(const falconNetState_v1_t& state) {
  auto devices = all<falconNetDevice_v1>(state.devices);
  auto connections = all<falconNetConnection_v1>(state.connections);
  if (!devices || !connections) return std::nullopt;
  std::stable_partition(connections->begin(), connections->end(),
                        [](const falconNetConnection_v1& one) { return one.sends != 0; });
  if (connections->size() > mostConnectionsShown) connections->resize(mostConnectionsShown);
  return NetSnapshot{state.plugin ? state.plugin : "", std::move(*devices), std::move(*connections)};
}

std::string encode(const NetSnapshot& snapshot) {
  WireWriter writer;
  writer.put(magic).put(std::string_view(snapshot.plugin));
  put(writer, snapshot.devices);
  put(writer, snapshot.connections);
  return writer.take();
}

std::optional<NetSnapshot> decodeNetSnapshot(std::string_view bytes) {
  WireReader reader(bytes);
  if (reader.get<std::uint32_t>() != magic) return std::nullopt;
  NetSnapshot snapshot;
  snapshot.plugin = reader.getString();
  if (!get(reader, snapshot.devices) || !get(reader, snapshot.connections) || !reader.finished()) return std::nullopt;
  for (auto& device : snapshot.devices) endText(device.name);
  for (auto& connection : snapshot.connections) endText(connection.peer);
  return snapshot;
}

}  // namespace falcon::transport::net
