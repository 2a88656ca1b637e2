// Ranks for tests of the ports over a net plugin, in threads of this process.
#pragma once

#include <stdexcept>

#include "harness/fake_net_library.h"
#include "transport/plugin/plugin_frame.h"
#include "transport/plugin/plugin_ports.h"
#include "unit/transport/ports_world.h"

namespace falcon::transport::test {

/// Two or more ranks in this process, each on a node of its own, with a session of the plugin each.
struct PluginWorld {
  PluginWorld(const falcon::test::FakeNet& fake, int size, Medium medium = Medium::socket)
      : base(size, medium), nets({fake.path()}) {
    for (Rank rank = 0; rank < size; ++rank) {
      const auto session = nets.open(42, "", pluginMessageBytes(131072));
      if (!session || !*session) throw std::runtime_error("the fake plugin is not used");
      ports.push_back(makePluginPorts(std::move(base.ports[static_cast<std::size_t>(rank)]), *session, 42, testSecret,
                                      rank, base.peers));
    }
  }

  World base;
  net::NetDirectory nets;
  std::vector<std::unique_ptr<Ports>> ports;
};

}  // namespace falcon::transport::test
