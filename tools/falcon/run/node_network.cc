#include "run/node_network.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "machine/net_namespace.h"
#include "machine/program.h"

namespace falcon::tools {
namespace {

// A node has several interfaces in one subnet. By default Linux then answers ARP for every address on every interface,
// and traffic of one rank would pass another rank's link.
struct Setting {
  const char* path;
  const char* value;
};
constexpr Setting settings[] = {
    {"/proc/sys/net/ipv4/conf/all/arp_ignore", "1"},       {"/proc/sys/net/ipv4/conf/default/arp_ignore", "1"},
    {"/proc/sys/net/ipv4/conf/all/arp_announce", "2"},     {"/proc/sys/net/ipv4/conf/default/arp_announce", "2"},
    {"/proc/sys/net/ipv4/conf/all/rp_filter", "0"},        {"/proc/sys/net/ipv4/conf/default/rp_filter", "0"},
    {"/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"},
};

void configure() {
  for (const auto& setting : settings) {
    const FileDescriptor file(::open(setting.path, O_WRONLY | O_CLOEXEC));
    if (file) (void)!::write(file.get(), setting.value, std::strlen(setting.value));  // IPv6 may be missing: good too
  }
}

Result<FileDescriptor> makeConfiguredNamespace() {
  auto before = openNetNamespace("/proc/self/ns/net");
  if (!before) return before.error();
  auto made = makeNetNamespace();
  if (!made) return made;
  if (::setns(made->get(), CLONE_NEWNET) != 0)
    return Error::system("cannot enter a network namespace: {}", std::strerror(errno));
  configure();
  if (::setns(before->get(), CLONE_NEWNET) != 0)
    return Error::system("cannot leave a network namespace: {}", std::strerror(errno));
  return made;
}

Status runBatch(int netNamespace, std::string commands) {
  // -batch reads a file: a large job's commands do not fit into a pipe that nobody reads yet.
  char path[] = "/tmp/falcon-run-XXXXXX";
  const FileDescriptor file(::mkostemp(path, O_CLOEXEC));
  if (!file || ::write(file.get(), commands.data(), commands.size()) != static_cast<ssize_t>(commands.size()))
    return Error::system("cannot write {}: {}", path, std::strerror(errno));
  const auto done = runProgram({{"ip", "-batch", path}, netNamespace});
  ::unlink(path);
  if (done) return {};
  return Error::system("{} (the network of --nodes needs root and the iproute2 package)", done.error().message());
}

std::string bridgeCommands(const std::vector<RankPlacement>& places, const std::vector<FileDescriptor>& nodes) {
  std::string text = "link set lo up\nlink add bridge0 type bridge\nlink set bridge0 up\n";
  for (const auto& place : places) {
    const std::string node = pathOfNetNamespace(::getpid(), nodes[static_cast<size_t>(place.node)].get());
    text +=
        fmt::format("link add port{} type veth peer name {} netns {}\n", place.place, interfaceOf(place.place), node);
    text += fmt::format("link set port{} master bridge0 up\n", place.place);
  }
  return text;
}

// Source routing: what leaves from a rank's address leaves by that rank's interface.
std::string nodeCommands(const std::vector<RankPlacement>& places, int node) {
  std::string text = "link set lo up\n";
  for (const auto& place : places) {
    if (place.node != node) continue;
    const std::string interface = interfaceOf(place.place);
    const std::string address = addressOf(place.place);
    const int table = 1000 + place.place;
    text += fmt::format("addr add {}/{} dev {}\n", address, addressPrefixLength, interface);
    text += fmt::format("link set {} up\n", interface);
    text += fmt::format("rule add from {} table {}\n", address, table);
    text += fmt::format("route add {} dev {} src {} table {}\n", addressNetwork, interface, address, table);
  }
  return text;
}

}  // namespace

Result<NodeNetwork> NodeNetwork::make(const std::vector<RankPlacement>& places) {
  NodeNetwork network;
  auto bridge = makeConfiguredNamespace();
  if (!bridge) return bridge.error();
  network.bridge_ = std::move(*bridge);
  const int nodes = places.back().node + 1;  // blocks, then spares: the last place is on the last node
  for (int node = 0; node < nodes; ++node) {
    auto made = makeConfiguredNamespace();
    if (!made) return made.error();
    network.nodes_.push_back(std::move(*made));
  }
  if (auto done = runBatch(network.bridge_.get(), bridgeCommands(places, network.nodes_)); !done) return done.error();
  for (int node = 0; node < nodes; ++node)
    if (auto done = runBatch(network.descriptorOf(node), nodeCommands(places, node)); !done) return done.error();
  return network;
}

}  // namespace falcon::tools
