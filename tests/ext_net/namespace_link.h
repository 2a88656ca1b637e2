// A link between two network namespaces.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "base/owned.h"
#include "ext_net/packet_program.h"

namespace falcon::net::test {

inline bool runs(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

/// Two namespaces, `west` and `east`, with a veth pair between them, of this process only.
class Link {
 public:
  Link() {
    const std::string id = std::to_string(getpid());
    west = "fnw" + id, east = "fne" + id;
    const std::string w = "w" + id, e = "e" + id;
    interface = w, farInterface = e;
    remove();  // what a killed program has left whose process had our number
    isThere = runs("ip netns add " + west) && runs("ip netns add " + east) &&
              runs("ip link add " + w + " netns " + west + " type veth peer name " + e + " netns " + east) &&
              runs("ip -n " + west + " addr add 10.77.0.1/24 dev " + w) &&
              runs("ip -n " + east + " addr add 10.77.0.2/24 dev " + e) &&
              runs("ip -n " + west + " link set " + w + " up") && runs("ip -n " + east + " link set " + e + " up");
  }
  ~Link() { remove(); }
  Link(const Link&) = delete;

  void limit(const std::string& rate) const {
    ASSERT_TRUE(runs("ip netns exec " + west + " tc qdisc add dev " + interface + " root handle 1: htb default 1"));
    ASSERT_TRUE(
        runs("ip netns exec " + west + " tc class add dev " + interface + " parent 1: classid 1:1 htb rate " + rate));
  }
  /// Both ends have noticed that the other one is there: a moment after this is made.
  bool isUp() const {
    const auto sees = [](const std::string& space, const std::string& its) {
      return runs("ip -n " + space + " link show dev " + its + " | grep -q 'state UP'");
    };
    return sees(west, interface) && sees(east, farInterface);
  }
  /// From now on that is done to what `west` sends, where it arrives: a sender whose own host drops is told of it.
  bool run(const PacketProgram& program) const {
    const std::string at = "dev " + farInterface;
    return runs("ip netns exec " + east + " tc qdisc add " + at + " clsact") &&
           runs("ip netns exec " + east + " tc filter add " + at + " ingress bpf da pinned " + program.path());
  }
  /// Both ends may be told of congestion by marks.
  bool allowMarks() const {
    return runs("ip netns exec " + west + " sysctl -w net.ipv4.tcp_ecn=1") &&
           runs("ip netns exec " + east + " sysctl -w net.ipv4.tcp_ecn=1");
  }
  void cut() const { ASSERT_TRUE(runs("ip -n " + west + " link set " + interface + " down")); }
  /// As if `east` had no power: what `west` sends is dropped, and nothing tells it.
  void cutFar() const { ASSERT_TRUE(runs("ip -n " + east + " link set " + farInterface + " down")); }

  std::string west, east, interface, farInterface;
  bool isThere = false;

 private:
  void remove() const {
    runs("ip netns del " + west);
    runs("ip netns del " + east);
  }
};

/// This thread's, from now on.
inline void enter(const std::string& space) {
  const FileDescriptor file(open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || setns(file.get(), CLONE_NEWNET) != 0) throw std::runtime_error("cannot enter namespace " + space);
}

}  // namespace falcon::net::test
