// Our declarations of NCCL's net plugin interface against sizes and places measured with its own headers (2.30
// to 2.32).
#include <gtest/gtest.h>

#include <cstddef>

#include "transport/plugin/net_v10.h"
#include "transport/plugin/net_v12.h"
#include "transport/plugin/net_v6.h"
#include "transport/plugin/net_v7.h"
#include "transport/plugin/net_v8.h"

namespace falcon::transport::net {
namespace {

template <class Plugin, class Properties>
void expectLayout(std::size_t plugin, std::size_t properties, std::size_t latency, std::size_t receives) {
  EXPECT_EQ(sizeof(Plugin), plugin);
  EXPECT_EQ(offsetof(Plugin, test), 104U);
  EXPECT_EQ(offsetof(Plugin, closeListen), 128U);
  EXPECT_EQ(sizeof(Properties), properties);
  EXPECT_EQ(offsetof(Properties, latency), latency);
  EXPECT_EQ(offsetof(Properties, maxRecvs), receives);
}

TEST(NetAbi, IsLaidOutAsNcclsOwn) {
  expectLayout<PluginV6, PropertiesV6>(136, 48, 36, 44);
  expectLayout<PluginV7, PropertiesV7>(152, 56, 36, 44);
  expectLayout<PluginV8, PropertiesV8>(152, 64, 40, 48);
  expectLayout<PluginV9, PropertiesV9>(160, 104, 44, 52);
  expectLayout<PluginV10, PropertiesV9>(160, 104, 44, 52);
  expectLayout<PluginV11, PropertiesV11>(176, 112, 44, 52);
  expectLayout<PluginV12, PropertiesV12>(176, 128, 44, 52);
  EXPECT_EQ(offsetof(PropertiesV9, maxP2pBytes), 88U);
  EXPECT_EQ(offsetof(PropertiesV11, maxP2pBytes), 88U);
  EXPECT_EQ(offsetof(PropertiesV12, maxP2pBytes), 104U);
  EXPECT_EQ(offsetof(PropertiesV12, railId), 124U);
  EXPECT_EQ(offsetof(PluginV12, finalize), 160U);
}

}  // namespace
}  // namespace falcon::transport::net
