// How ends over verbs meet, and what they choose.
#include <gmock/gmock.h>

#include "base/net_parameters.h"
#include "ext_net/verbs_fixture.h"
#include "verbs/end_facts.h"
#include "verbs/gid_choice.h"
#include "verbs/port_rule.h"

namespace falcon::net::test {
namespace {

using testing::HasSubstr;

class VerbsConnect : public OverFakeVerbs {};

TEST_F(VerbsConnect, IsAskedForAgainAndAgainAndNeverBlocks) {
  HandleBytes handle;
  const auto listener = over().listen(0, handle.get());
  ASSERT_TRUE(listener);
  for (int i = 0; i < 20; ++i) {
    const auto made = over().connect(1, handle.get());
    ASSERT_TRUE(made);
    ASSERT_EQ(*made, nullptr) << "nobody has accepted";
  }
  EXPECT_EQ(fake_.pairs().size(), 1u) << "each time it is the same one";
  std::unique_ptr<Connection> sender, receiver;
  ASSERT_TRUE(waitFor([&] {
    if (!sender) sender = std::move(*over().connect(1, handle.get()));
    if (!receiver) receiver = std::move(*(*listener)->accept());
    return sender && receiver;
  }));
}

TEST_F(VerbsConnect, GivesAReceiverOnlyOnceTheSenderIsReady) {
  HandleBytes handle;
  const auto listener = over().listen(0, handle.get());
  // The sender's last step is held back: it has not read the answer.
  ASSERT_TRUE(waitFor([&] {
    if (fake_.pairs().size() < 2) static_cast<void>(over().connect(1, handle.get()));
    EXPECT_EQ(*(*listener)->accept(), nullptr);
    return fake_.pairs().size() == 2;
  }));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(*(*listener)->accept(), nullptr);
  std::unique_ptr<Connection> sender, receiver;
  EXPECT_TRUE(waitFor([&] {
    if (!sender) sender = std::move(*over().connect(1, handle.get()));
    if (!receiver) receiver = std::move(*(*listener)->accept());
    return sender && receiver;
  }));
}

TEST_F(VerbsConnect, TakesTheSmallerMtuOfBoth) {
  fake_.devices()[1].ports[0].active_mtu = IBV_MTU_1024;
  ends();
  const auto both = fake_.broughtTo(IBV_QPS_RTR);
  ASSERT_EQ(both.size(), 2u);
  for (const ibv_qp_attr& one : both) EXPECT_EQ(one.path_mtu, IBV_MTU_1024);
  expectArrivesWhole(ends(), 100'000, 1);
}

TEST_F(VerbsConnect, IsLostWithinFiveSecondsByItsTimeouts) {
  ends();
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTS)) {
    EXPECT_EQ(one.timeout, 15);
    EXPECT_EQ(one.retry_cnt, 7);
    EXPECT_LT(one.rnr_retry, 7) << "seven means for ever";
    const double longest = 4 * 4.096e-6 * static_cast<double>(1 << one.timeout) * (one.retry_cnt + 1);
    EXPECT_LT(longest, 5.0);
    EXPECT_GT(longest / 4, 1.0) << "a moment's trouble must not end a job";
  }
}

TEST_F(VerbsConnect, ObeysNcclsOwnParameters) {
  const Setting timeout("NCCL_IB_TIMEOUT", "18"), retries("NCCL_IB_RETRY_CNT", "3"), level("NCCL_IB_SL", "5"),
      traffic("NCCL_IB_TC", "106");
  ends();
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTS)) {
    EXPECT_EQ(one.timeout, 18);
    EXPECT_EQ(one.retry_cnt, 3);
  }
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTR)) {
    EXPECT_EQ(one.ah_attr.sl, 5);
    EXPECT_EQ(one.ah_attr.grh.traffic_class, 106);
  }
}

TEST_F(VerbsConnect, SendsFromTheIpv4AddressOfRoceV2) {
  ends();
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTR)) {
    EXPECT_TRUE(one.ah_attr.is_global);
    EXPECT_EQ(one.ah_attr.grh.sgid_index, 3);
    EXPECT_THAT(textOf(one.ah_attr.grh.dgid), HasSubstr("10.0.0."));
  }
}

TEST_F(VerbsConnect, SendsFromTheAddressThatIsWished) {
  const Setting index("NCCL_IB_GID_INDEX", "1");
  ends();
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTR)) EXPECT_EQ(one.ah_attr.grh.sgid_index, 1);
  expectArrivesWhole(ends(), 100, 1);
}

TEST_F(VerbsConnect, SaysWhereTheAddressThatIsWishedIsNone) {
  const Setting index("NCCL_IB_GID_INDEX", "9");
  VerbsNetwork over(fake_, FALCON_VERBS_TREE);
  const auto devices = over.devices();
  ASSERT_FALSE(devices);
  EXPECT_EQ(devices.error().code(), ErrorCode::invalidUsage);
  EXPECT_THAT(devices.error().message(), HasSubstr("NCCL_IB_GID_INDEX=9"));
}

TEST_F(VerbsConnect, DoesNotLetInWhoDoesNotKnowTheSecret) {
  HandleBytes handle;
  const auto listener = over().listen(0, handle.get());
  auto known = *readHandle(handle.get());
  known.secret.fill(std::byte{1});
  HandleBytes wrong;
  write(known, wrong.get());
  const auto error = whyNotConnected(over(), wrong.get(), [&] { EXPECT_FALSE(*(*listener)->accept()); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote);
  EXPECT_THAT(error->message(), HasSubstr("does not know the secret"));
}

TEST_F(VerbsConnect, IsAnErrorWhereNobodyListens) {
  HandleBytes handle, zeros;
  over().listen(0, handle.get())->reset();
  const auto error = whyNotConnected(over(), handle.get());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote) << error->message();
  const auto made = over().connect(0, zeros.get());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::invalidArgument);
}

TEST_F(VerbsConnect, IsAnErrorWhereTheListenerGoesInTheMidstOfIt) {
  HandleBytes handle;
  auto listener = over().listen(0, handle.get());
  static_cast<void>(over().connect(1, handle.get()));
  listener->reset();
  const auto error = whyNotConnected(over(), handle.get());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::remote) << error->message();
}

/// A call of verbs that fails once while the ends meet, after so many that went well.
struct Refusal {
  const char* call;
  int after;
};
void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.call << " after " << refusal.after;
}
class VerbsRefusal : public VerbsConnect, public testing::WithParamInterface<Refusal> {};

TEST_P(VerbsRefusal, IsAnErrorThatLeavesNothingBehind) {
  over();
  fake_.fail(GetParam().call, ENOMEM, 1, GetParam().after);
  HandleBytes handle;
  auto listener = over().listen(0, handle.get());
  std::optional<Error> error;
  std::unique_ptr<Connection> sender, receiver;
  ASSERT_TRUE(waitFor([&] {
    if (!sender) {
      auto made = over().connect(1, handle.get());
      if (!made) error = made.error();
      if (made) sender = std::move(*made);
    }
    auto accepted = (*listener)->accept();
    if (!error && !accepted) error = accepted.error();
    return error.has_value();
  }));
  EXPECT_EQ(error->code(), ErrorCode::system) << error->message();
  EXPECT_THAT(error->message(), HasSubstr("mlx5_"));
}
// Of each first the sender's, then the receiver's.
INSTANTIATE_TEST_SUITE_P(Calls, VerbsRefusal,
                         testing::Values(Refusal{"createCompletionQueue", 0}, Refusal{"createCompletionQueue", 1},
                                         Refusal{"createQueuePair", 0}, Refusal{"createQueuePair", 1},
                                         Refusal{"modify", 0}, Refusal{"modify", 1}, Refusal{"modify", 2},
                                         Refusal{"modify", 3}, Refusal{"modify", 4}, Refusal{"modify", 5},
                                         Refusal{"registerMemory", 0}, Refusal{"registerMemory", 1},
                                         Refusal{"postReceive", 0}, Refusal{"postReceive", 33}),
                         [](const auto& given) {
                           return given.param.call + std::string("After") + std::to_string(given.param.after);
                         });

class VerbsDevices : public VerbsConnect {
 protected:
  std::string whyNone() {
    VerbsNetwork over(fake_, FALCON_VERBS_TREE);
    const auto devices = over.devices();
    if (devices) return "there are some";
    EXPECT_EQ(devices.error().code(), ErrorCode::system);
    return devices.error().message();
  }
  std::vector<std::string> names() {
    VerbsNetwork over(fake_, FALCON_VERBS_TREE);
    std::vector<std::string> all;
    const auto devices = over.devices();
    for (const Device& device : *devices) all.push_back(fmt::format("{}:{}", device.name, device.port));
    return all;
  }
};

TEST_F(VerbsDevices, SayWhatTheyAre) {
  const auto devices = over().devices();
  ASSERT_EQ(devices->size(), 2u);
  const Device& first = (*devices)[0];
  EXPECT_EQ(first.name, "mlx5_0");
  EXPECT_EQ(first.port, 1);
  EXPECT_EQ(first.speed, 100'000);  // as the tree says
  EXPECT_EQ(first.connections, 1000);
  EXPECT_NE(first.guid, 0u);
  EXPECT_EQ((*devices)[1].speed, 10'000) << "the tree does not say";
}

TEST_F(VerbsDevices, AreThePortsThatAreActiveAndAllowed) {
  fake_.devices()[0].attributes.phys_port_cnt = 2;
  fake_.devices()[0].ports.push_back(fake_.devices()[0].ports[0]);
  EXPECT_THAT(names(), testing::ElementsAre("mlx5_0:1", "mlx5_0:2", "mlx5_1:1"));
  fake_.devices()[0].ports[0].state = IBV_PORT_DOWN;
  EXPECT_THAT(names(), testing::ElementsAre("mlx5_0:2", "mlx5_1:1"));
  const Setting rule("NCCL_IB_HCA", "=mlx5_1");
  EXPECT_THAT(names(), testing::ElementsAre("mlx5_1:1"));
}

TEST_F(VerbsDevices, ThatAreNoneAreAnErrorThatSaysWhy) {
  {
    const Setting rule("NCCL_IB_HCA", "bnxt");
    EXPECT_THAT(whyNone(), testing::AllOf(HasSubstr("mlx5_0, mlx5_1"), HasSubstr("NCCL_IB_HCA=bnxt")));
  }
  fake_.fail("open", EACCES, 4);  // counted, and opened
  EXPECT_THAT(whyNone(), HasSubstr("mlx5_1"));
  for (FakeDevice& device : fake_.devices()) device.ports[0].link_layer = IBV_LINK_LAYER_UNSPECIFIED;  // iWARP, EFA
  EXPECT_THAT(whyNone(), HasSubstr("no RDMA device"));
  fake_.devices().clear();
  EXPECT_THAT(whyNone(), HasSubstr("the kernel lists none"));
  fake_.fail("deviceNames", ENOSYS);
  EXPECT_THAT(whyNone(), HasSubstr("no RDMA device"));
}

TEST_F(VerbsDevices, OfWhichOneCannotBeUsedAreTheOthers) {
  fake_.devices()[0].gids.clear();
  EXPECT_THAT(names(), testing::ElementsAre("mlx5_1:1"));
}

class OverInfiniband : public OverFakeVerbs {
 protected:
  OverInfiniband()
      : OverFakeVerbs({infinibandDevice("mlx5_0", 11), infinibandDevice("mlx5_1", 12), roceDevice("mlx5_2", 1)}) {}
};

TEST_F(OverInfiniband, EndsFindEachOtherByTheirLids) {
  expectArrivesWhole(ends(), 100'000, 1);
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTR)) {
    EXPECT_FALSE(one.ah_attr.is_global);
    EXPECT_THAT(one.ah_attr.dlid, testing::AnyOf(11, 12));
  }
}

TEST_F(OverInfiniband, EndsOfOtherSubnetsFindEachOtherByTheirGids) {
  fake_.devices()[1].gids[0].gid.raw[7] = 9;
  expectArrivesWhole(ends(), 100, 1);
  for (const ibv_qp_attr& one : fake_.broughtTo(IBV_QPS_RTR)) EXPECT_TRUE(one.ah_attr.is_global);
}

TEST_F(OverInfiniband, AnEndOfRoceDoesNotFit) {
  HandleBytes handle;
  const auto listener = over().listen(0, handle.get());
  std::optional<Error> error;
  ASSERT_TRUE(waitFor([&] {
    static_cast<void>(over().connect(2, handle.get()));
    const auto accepted = (*listener)->accept();
    if (!accepted) error = accepted.error();
    return error.has_value();
  }));
  EXPECT_EQ(error->code(), ErrorCode::invalidUsage) << error->message();
}

TEST(PortRule, IsThatOfNccl) {
  EXPECT_TRUE(allowsPort("", "mlx5_0", 1));
  EXPECT_TRUE(allowsPort("mlx5", "mlx5_10", 2));
  EXPECT_TRUE(allowsPort("mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(allowsPort("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(allowsPort("=mlx5_1:2,mlx5_3", "mlx5_1", 2));
  EXPECT_FALSE(allowsPort("=mlx5_1:2,mlx5_3", "mlx5_1", 1));
  EXPECT_TRUE(allowsPort("=mlx5_1:2,mlx5_3", "mlx5_3", 1));
  EXPECT_FALSE(allowsPort("^mlx5_1", "mlx5_1", 1));
  EXPECT_TRUE(allowsPort("^=mlx5_1", "mlx5_10", 1));
  EXPECT_FALSE(allowsPort("bnxt", "mlx5_0", 1));
}

TEST(GidChoice, PrefersRoceV2ThenIpv4ThenALowIndex) {
  FakeDevice device = roceDevice("mlx5_0", 1);
  EXPECT_EQ(chooseGid(device.gids), 3u);
  device.gids.push_back(device.gids[3]);
  device.gids.back().gid_index = 7;
  EXPECT_EQ(chooseGid(device.gids), 3u);
  device.gids.resize(3);
  EXPECT_EQ(chooseGid(device.gids), 1u) << "v2 of the link before v1 of IPv4";
  device.gids[1].gid = {};
  EXPECT_EQ(chooseGid(device.gids), 2u);
  EXPECT_FALSE(chooseGid({}));
}

TEST(EndFacts, AreReadAsTheyWereWritten) {
  EndFacts facts;
  facts.linkLayer = IBV_LINK_LAYER_ETHERNET;
  facts.mtu = IBV_MTU_4096;
  facts.lid = 7;
  facts.pair = 0x123456;
  facts.firstPacket = 0xabcdef;
  facts.gid.raw[3] = 9;
  const std::string text = facts.text();
  ASSERT_EQ(text.size(), EndFacts::textBytes);
  const auto read = EndFacts::read(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->text(), text);
}

TEST(EndFacts, ThatAreNoneAreNotTaken) {
  const std::string text = EndFacts().text();
  EXPECT_FALSE(EndFacts::read(""));
  EXPECT_FALSE(EndFacts::read(text + "x"));
  EXPECT_FALSE(EndFacts::read(text.substr(0, 31)));
  for (const std::size_t place : {0u, 5u, 11u, 15u}) {  // magic, MTU, numbers of more than 24 bits
    std::string changed = text;
    changed[place] = '\x7f';
    EXPECT_FALSE(EndFacts::read(changed)) << place;
  }
}

}  // namespace
}  // namespace falcon::net::test
