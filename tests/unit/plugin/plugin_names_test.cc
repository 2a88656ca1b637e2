#include "plugin/plugin_names.h"

#include <gtest/gtest.h>

namespace falcon::plugin {
namespace {

using Names = std::vector<std::string>;

TEST(PluginNames, AreAListWithoutEmptyOnes) {
  EXPECT_EQ(pluginNames("ofi"), Names{"ofi"});
  EXPECT_EQ(pluginNames("ofi,,/opt/x.so,"), (Names{"ofi", "/opt/x.so"}));
  EXPECT_EQ(pluginNames(""), Names{});
  EXPECT_EQ(pluginNames(","), Names{});
}

TEST(PluginNames, NoneMeansNone) {
  EXPECT_EQ(pluginNames("none"), Names{});
  EXPECT_EQ(pluginNames("NONE"), Names{});
  EXPECT_EQ(pluginNames("nonesuch"), Names{"nonesuch"});
}

TEST(PluginNames, AreNoMoreThanNcclTakes) {
  std::string list;
  for (int i = 0; i < 20; ++i) list += "p" + std::to_string(i) + ",";
  EXPECT_EQ(pluginNames(list).size(), mostPlugins);
}

TEST(PluginNames, BecomeFilesAsNcclHasIt) {
  EXPECT_EQ(filesOf("net", "ofi"), (Names{"ofi", "libnccl-net-ofi.so"}));
  EXPECT_EQ(filesOf("net", "libnccl-net.so"), Names{"libnccl-net.so"});
  EXPECT_EQ(filesOf("net", "./ofi"), Names{"./ofi"});
  EXPECT_EQ(filesOf("net", "/opt/ofi.so"), Names{"/opt/ofi.so"});
  // Neither begins with lib and ends with .so.
  EXPECT_EQ(filesOf("net", "x.so"), (Names{"x.so", "libnccl-net-x.so.so"}));
  EXPECT_EQ(filesOf("net", "libfast"), (Names{"libfast", "libnccl-net-libfast.so"}));
  EXPECT_EQ(filesOf("tuner", "ofi"), (Names{"ofi", "libnccl-tuner-ofi.so"}));
  EXPECT_EQ(filesOf("net", "STATIC_PLUGIN"), Names{""});
}

}  // namespace
}  // namespace falcon::plugin
