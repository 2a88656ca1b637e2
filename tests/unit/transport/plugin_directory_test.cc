// Which plugin a communicator gets, and why it gets no other.
#include "transport/plugin/net_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/fake_net_library.h"

namespace falcon::transport::net {
namespace {

using falcon::test::FakeNet;
using testing::HasSubstr;

constexpr std::size_t messageBytes = 131136;
constexpr const char* anyNetwork = "";

class EveryVersion : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Net, EveryVersion, testing::Range(6, 13));

TEST_P(EveryVersion, IsLoadedAndBegunAsNcclDoes) {
  const FakeNet fake(std::to_string(GetParam()));
  const bool perCommunicator = GetParam() >= 11;
  NetDirectory directory({fake.path()});
  {
    const auto one = directory.open(1, anyNetwork, messageBytes);
    const auto other = directory.open(2, "fAKE", messageBytes);
    ASSERT_TRUE(one && *one && other && *other);
    EXPECT_EQ((*one)->calls().version(), GetParam());
    EXPECT_STREQ((*one)->calls().name(), "Fake");
    EXPECT_EQ((*one)->devices(), 1);
    EXPECT_EQ(fake.counts().inits, perCommunicator ? 2 : 1);
    EXPECT_EQ(fake.counts().finalizes, 0);
  }
  EXPECT_EQ(fake.counts().finalizes, perCommunicator ? 2 : 0);
  const auto later = directory.open(3, anyNetwork, messageBytes);
  ASSERT_TRUE(later && *later);
  EXPECT_EQ(fake.counts().inits, perCommunicator ? 3 : 1);
}

TEST(NetDirectory, TakesTheNewestVersionOfALibrary) {
  const FakeNet fake("-two");
  NetDirectory directory({fake.path()});
  const auto session = directory.open(1, anyNetwork, messageBytes);
  ASSERT_TRUE(session && *session);
  EXPECT_EQ((*session)->calls().version(), 11);
}

TEST(NetDirectory, StaticPluginIsWhatTheProgramHas) {
  const FakeNet fake("7");
  ASSERT_NE(dlopen(fake.path().c_str(), RTLD_NOW | RTLD_GLOBAL), nullptr);  // as if it were linked
  NetDirectory directory({"static_plugin"});
  const auto session = directory.open(1, "Fake", messageBytes);
  ASSERT_TRUE(session && *session);
  EXPECT_EQ((*session)->calls().version(), 7);
  EXPECT_EQ(fake.counts().inits, 1);
}

TEST(NetDirectory, AMemberThatMayBeMissingIsNotCalled) {
  const FakeNet fake("12", "no-finalize");
  NetDirectory directory({fake.path()});
  ASSERT_TRUE(directory.open(1, anyNetwork, messageBytes));
  EXPECT_EQ(fake.counts().inits, 1);
}

struct Fault {
  const char* version;
  const char* fault;
  const char* reason;
};
void PrintTo(const Fault& fault, std::ostream* out) {
  *out << fault.fault << " of version " << fault.version;
}

class Unsound : public testing::TestWithParam<Fault> {};

TEST_P(Unsound, IsNamedWithItsReasonAndTheNextIsTaken) {
  const auto [version, fault, reason] = GetParam();
  const FakeNet bad(version, fault, "Bad"), good("12", "", "Good");
  {
    NetDirectory directory({bad.path(), good.path()});
    const auto session = directory.open(1, anyNetwork, messageBytes);
    ASSERT_TRUE(session && *session);
    EXPECT_STREQ((*session)->calls().name(), "Good");
  }
  NetDirectory alone({bad.path()});
  const auto refused = alone.open(1, "bad", messageBytes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(refused.error().message(), HasSubstr(reason));
  EXPECT_THAT(refused.error().message(), HasSubstr("Bad"));
  const auto sockets = alone.open(1, anyNetwork, messageBytes);
  ASSERT_TRUE(sockets);
  EXPECT_EQ(*sockets, nullptr);
  const bool madeContexts = std::stoi(version) >= 11 && std::string_view(fault) != "init";
  EXPECT_EQ(bad.counts().finalizes, madeContexts ? bad.counts().inits.load() : 0) << "a context that was made is ended";
}

INSTANTIATE_TEST_SUITE_P(
    Net, Unsound,
    testing::Values(Fault{"12", "lacks-members", "its struct lacks isend, test"},
                    Fault{"6", "lacks-members", "its struct lacks isend, test"},
                    Fault{"6", "init", "init returned 2 (system error)"},
                    Fault{"12", "init", "init returned 2 (system error)"},
                    Fault{"9", "devices", "devices returned 2 (system error)"},
                    Fault{"12", "no-device", "it has no device (devices says 0)"},
                    Fault{"11", "properties", "getProperties of device 0 returned 2 (system error)"},
                    Fault{"8", "no-name", "device 0 has no name"},
                    Fault{"10", "no-host-memory", "device 0 (lo) cannot reach memory of the host (ptrSupport is 2)"},
                    Fault{"7", "gpu-driven", "device 0 (lo) is to be driven by a GPU (netDeviceType is 1)"},
                    Fault{"12", "gpu-driven", "device 0 (lo) is to be driven by a GPU (netDeviceType is 1)"},
                    Fault{"6", "no-connections", "device 0 (lo) has maxComms 0"},
                    Fault{"11", "no-receives", "device 0 (lo) has maxRecvs 0"},
                    Fault{"9", "parts", "device 0 (lo) is made of 9 devices; 1 to 4 are possible"},
                    Fault{"12", "parts", "device 0 (lo) is made of 9 devices; 1 to 8 are possible"},
                    Fault{"9", "short-messages", "device 0 (lo) carries messages of at most 1000 bytes"}));

TEST(NetDirectory, APluginThatFailedIsNotTriedAgain) {
  const FakeNet bad("12", "init");
  NetDirectory directory({bad.path()});
  EXPECT_TRUE(directory.open(1, anyNetwork, messageBytes));
  EXPECT_TRUE(directory.open(2, anyNetwork, messageBytes));
  EXPECT_EQ(bad.counts().inits, 1);
}

TEST(NetDirectory, WhatIsNoPluginIsSaid) {
  NetDirectory directory({"/no/such/file.so", "no-such", FALCON_FAKE_NETS "/libfake_gpu.so", "libc.so.6"});
  const auto refused = directory.open(1, "Fake", messageBytes);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("Could not find: /no/such/file.so;"));
  EXPECT_THAT(refused.error().message(), HasSubstr("Could not find: no-such libnccl-net-no-such.so;"));
  EXPECT_THAT(refused.error().message(),
              HasSubstr("External network plugin libc.so.6 is unsupported: it has none of ncclNetPlugin_v6 to "
                        "ncclNetPlugin_v12"));
  EXPECT_TRUE(directory.open(1, anyNetwork, messageBytes));
}

TEST(NetDirectory, ANameChoosesAndAnotherIsAnError) {
  const FakeNet one("9", "", "One"), two("12", "", "Two");
  NetDirectory directory({one.path(), two.path()});
  const auto second = directory.open(1, "TWO", messageBytes);
  ASSERT_TRUE(second && *second);
  EXPECT_STREQ((*second)->calls().name(), "Two");
  EXPECT_EQ(one.counts().inits, 0) << "who is not wished for is not begun";
  const auto sockets = directory.open(2, "socket", messageBytes);
  ASSERT_TRUE(sockets);
  EXPECT_EQ(*sockets, nullptr);
  const auto refused = directory.open(3, "IB", messageBytes);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(refused.error().message(), HasSubstr("NCCL_NET=IB"));
  EXPECT_THAT(refused.error().message(), HasSubstr("Two"));
}

// As NCCL: a process uses one plugin.
TEST(NetDirectory, WhereOneIsTakenTheOthersAreNotAskedAnyMore) {
  const FakeNet one("9", "", "One"), two("12", "", "Two");
  NetDirectory directory({one.path(), two.path()});
  const auto first = directory.open(1, anyNetwork, messageBytes);
  ASSERT_TRUE(first && *first);
  EXPECT_STREQ((*first)->calls().name(), "One");
  EXPECT_FALSE(directory.open(2, "Two", messageBytes));
  EXPECT_EQ(two.counts().inits, 0);
}

}  // namespace
}  // namespace falcon::transport::net
