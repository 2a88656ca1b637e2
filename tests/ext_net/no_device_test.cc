// libnccl-net-falcon-verbs.so on a machine without an RDMA device, as NCCL loads it.
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdarg>
#include <filesystem>

#include "ext_net/ends.h"
#include "transport/plugin/net_directory.h"
#include "transport/plugin/net_v10.h"
#include "transport/plugin/net_v12.h"
#include "transport/plugin/net_v8.h"

namespace falcon::net::test {
namespace {

using transport::net::LogLevel;
using transport::net::ResultCode;

constexpr ResultCode systemError = 2;

std::string said;

void note(LogLevel, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  va_list rest;
  va_start(rest, format);
  vsnprintf(text, sizeof text, format, rest);
  va_end(rest);
  said += text + std::string("\n");
}

template <class Struct>
const Struct& structOf(void* library, int version) {
  return *static_cast<const Struct*>(dlsym(library, ("ncclNetPlugin_v" + std::to_string(version)).c_str()));
}

TEST(VerbsWithoutDevice, SaysSoAndLetsTheNextPluginBeTaken) {
#ifndef FALCON_NET_VERBS
  GTEST_SKIP() << "not built here: libnccl-net-falcon-verbs.so";
#else
  if (std::filesystem::exists("/sys/class/infiniband") && !std::filesystem::is_empty("/sys/class/infiniband"))
    GTEST_SKIP() << "this machine has an RDMA device";
  void* const library = dlopen(FALCON_NET_VERBS, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  said.clear();
  EXPECT_EQ(structOf<transport::net::PluginV8>(library, 8).init(note), systemError);
  EXPECT_THAT(said, testing::HasSubstr("NET/falcon-verbs: there is no RDMA device to use: "));
  EXPECT_EQ(structOf<transport::net::PluginV9>(library, 9).init(note), systemError);
  EXPECT_EQ(structOf<transport::net::PluginV10>(library, 10).init(note, nullptr), systemError);
  void* context = nullptr;
  EXPECT_EQ(structOf<transport::net::PluginV11>(library, 11).init(&context, 1, nullptr, note, nullptr), systemError);
  EXPECT_EQ(structOf<transport::net::PluginV12>(library, 12).init(&context, 1, nullptr, note, nullptr), systemError);
  EXPECT_EQ(context, nullptr);
  int count = 7;
  EXPECT_EQ(structOf<transport::net::PluginV12>(library, 12).devices(&count), systemError);
  EXPECT_EQ(count, 7);

  const Setting interface("NCCL_SOCKET_IFNAME", "lo");
  transport::net::NetDirectory directory({FALCON_NET_VERBS, FALCON_NET_SOCKET});
  const auto session = directory.open(1, "", 4096);
  ASSERT_TRUE(session && *session);
  EXPECT_STREQ((*session)->calls().name(), "falcon-socket");
  const auto named = transport::net::NetDirectory({FALCON_NET_VERBS}).open(1, "falcon-verbs", 4096);
  ASSERT_FALSE(named);
  EXPECT_THAT(named.error().message(), testing::HasSubstr("falcon-verbs"));
#endif
}

}  // namespace
}  // namespace falcon::net::test
