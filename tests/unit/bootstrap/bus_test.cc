#include "bootstrap/bus.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "base/log.h"
#include "bootstrap/bus_frame.h"
#include "bootstrap/message_channel.h"
#include "harness/doorman.h"
#include "ranks.h"
#include "unit/base/environment.h"

namespace falcon::bootstrap {
namespace {

using BusPointer = std::shared_ptr<EmbeddedBus>;
using Kind = BusMessage::Kind;

BusPointer bus(Rank jobRank) {
  return *makeEmbeddedBus(reactor(), jobRank);
}

std::vector<BusPointer> buses(int count) {
  std::vector<BusPointer> all;
  for (Rank rank = 0; rank < count; ++rank) all.push_back(bus(rank));
  return all;
}

/// What a communicator of these processes does at init.
void meet(const std::vector<BusPointer>& members) {
  const transport::Secret secret = *randomSecret();
  std::vector<BusContact> contacts;
  for (const BusPointer& member : members) contacts.push_back(*BusContact::decode(member->contact().encode()));
  for (const BusPointer& member : members) member->meet(contacts, secret);
}

bool onePart(const std::vector<BusPointer>& members, const BusPointer& controller) {
  return std::ranges::all_of(members, [&](const BusPointer& member) {
    return member->controller() == controller->self() && member->members().size() == members.size();
  });
}

/// Takes messages until there is one of this kind; texts and news on the way go to `others`.
std::optional<BusMessage> next(const BusPointer& from, Kind kind, std::vector<BusMessage>* others = nullptr) {
  static std::map<ProcessId, std::vector<BusMessage>> kept;  // one thread takes
  auto& queue = kept[from->self()];
  for (int turn = 0; turn < 1200; ++turn) {
    while (!queue.empty()) {
      BusMessage message = queue.front();
      queue.erase(queue.begin());
      if (message.kind == kind) return message;
      if (others) others->push_back(message);
    }
    for (BusMessage& message : from->take(50ms)) queue.push_back(std::move(message));
  }
  return std::nullopt;
}

TEST(Bus, AProcessAloneIsItsOwnController) {
  const auto one = bus(5);
  EXPECT_TRUE(one->isController());
  EXPECT_EQ(one->members(), std::vector<ProcessId>{one->self()});
  one->toController("a");
  one->toAll("b");
  one->to(one->self(), "c");
  for (const char* text : {"a", "b", "c"}) {
    const auto message = next(one, Kind::text);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->bytes, text);
    EXPECT_EQ(message->from, one->self());
  }
}

TEST(Bus, TakeEndsAtItsLimitAndWhenWoken) {
  const auto one = bus(0);
  EXPECT_TRUE(one->take(1ms).empty());
  std::thread waker([&] {
    std::this_thread::sleep_for(50ms);
    one->wake();
  });
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(one->take(60s).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  waker.join();
}

TEST(Bus, IdsFollowTheJobRank) {
  EXPECT_LT(bus(0)->self(), bus(1)->self());
  EXPECT_LT(bus(4000)->self(), bus(-1)->self());
  EXPECT_NE(bus(3)->self(), bus(3)->self());
}

TEST(Bus, ContactsAreReadDefensively) {
  const std::string good = bus(0)->contact().encode();
  EXPECT_TRUE(BusContact::decode(good));
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(BusContact::decode(good.substr(0, length)));
}

class Buses : public testing::TestWithParam<int> {};

TEST_P(Buses, ThatMeetHaveOneControllerAndReachEachOther) {
  auto all = buses(GetParam());
  std::ranges::reverse(all);  // the lowest is not the first
  meet(all);
  const auto& controller = all.back();
  ASSERT_TRUE(eventually([&] { return onePart(all, controller); }));
  for (const auto& one : all) {
    one->toController("up");
    const auto message = next(controller, Kind::text);
    ASSERT_TRUE(message);
    EXPECT_EQ(message->from, one->self());
    controller->to(one->self(), "down");
    EXPECT_EQ(next(one, Kind::text)->bytes, "down");
    one->to(all.front()->self(), "across");
    EXPECT_EQ(next(all.front(), Kind::text)->from, one->self());
  }
  controller->toAll("all");
  for (const auto& one : all) EXPECT_EQ(next(one, Kind::text)->bytes, "all");
}

TEST_P(Buses, TellWhoJoinedAndWhoLeft) {
  auto all = buses(GetParam());
  meet(all);
  ASSERT_TRUE(eventually([&] { return onePart(all, all[0]); }));
  const ProcessId leaver = all.back()->self();
  all.pop_back();
  for (const auto& one : all) {
    std::vector<BusMessage> before;
    const auto left = next(one, Kind::left, &before);
    ASSERT_TRUE(left);
    EXPECT_EQ(left->from, leaver);
    std::set<ProcessId> joined;
    for (const BusMessage& message : before)
      EXPECT_TRUE(message.kind != Kind::joined || joined.insert(message.from).second);
    EXPECT_EQ(joined.size(), all.size());  // all but itself, the leaver included
    EXPECT_EQ(one->members().size(), all.size());
  }
}

TEST_P(Buses, PartsThatMeetLaterBecomeOneAndKeepTheOrderOfMessages) {
  const int size = GetParam();
  const auto low = buses(size);
  std::vector<BusPointer> high;
  for (Rank rank = size; rank < 2 * size; ++rank) high.push_back(bus(rank));
  meet(low);
  meet(high);
  ASSERT_TRUE(eventually([&] { return onePart(low, low[0]) && onePart(high, high[0]); }));

  // Everyone of the high part talks all the time, while a communicator of one from each part joins the two. What the
  // old controller took before the hand-over it took; all else must reach the new one, in order, nothing twice.
  constexpr int messages = 400;
  std::vector<std::thread> talkers;
  for (const auto& talker : high)
    talkers.emplace_back([&talker] {
      for (int number = 0; number < messages; ++number) {
        talker->toController(std::to_string(number));
        if (number % 10 == 0) std::this_thread::sleep_for(1ms);
      }
    });
  std::this_thread::sleep_for(10ms);
  meet({high.back(), low.back()});
  std::vector<BusPointer> both = low;
  both.insert(both.end(), high.begin(), high.end());
  for (std::thread& talker : talkers) talker.join();
  ASSERT_TRUE(eventually([&] { return onePart(both, low[0]); }));
  for (const auto& talker : high) talker->toController("end");

  std::map<ProcessId, std::vector<int>> heard;  // first by the old controller, then by the new
  for (const auto& listener : {high[0], low[0]}) {
    const bool old = listener == high[0];
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    for (std::size_t ends = 0; ends < (old ? 1 : high.size());) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline)
          << "only " << ends << " of " << high.size() << " came to the end";
      for (const BusMessage& message : listener->take(50ms)) {
        if (old && message.kind == Kind::controllerChanged && message.from == low[0]->self()) ++ends;
        if (message.kind != Kind::text) continue;
        if (message.bytes == "end")
          ++ends;
        else
          heard[message.from].push_back(std::stoi(message.bytes));
      }
    }
  }
  std::vector<int> expected(messages);
  for (int number = 0; number < messages; ++number) expected[static_cast<std::size_t>(number)] = number;
  for (const auto& talker : high) EXPECT_EQ(heard[talker->self()], expected);
}

TEST_P(Buses, FindAnotherControllerWhenTheirsLeaves) {
  auto all = buses(GetParam());
  meet(all);
  ASSERT_TRUE(eventually([&] { return onePart(all, all[0]); }));
  while (all.size() > 1) {
    const ProcessId gone = all[0]->self();
    all.erase(all.begin());
    ASSERT_TRUE(eventually([&] { return onePart(all, all[0]); })) << all.size();
    for (const auto& one : all) {
      while (next(one, Kind::controllerChanged)->from != all[0]->self()) {
      }
      one->toController("still there");
      const auto message = next(all[0], Kind::text);
      ASSERT_TRUE(message);
      EXPECT_EQ(message->from, one->self());
      EXPECT_EQ(std::ranges::count(one->members(), gone), 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Buses, testing::Values(2, 3, 4, 8));

// Too many had come to its controller before they were expected.
TEST(Bus, APartThatIsTurnedAwayComesAgain) {
  const std::vector<BusPointer> all = buses(2);
  std::vector<BusContact> contacts;
  for (const BusPointer& one : all) contacts.push_back(*BusContact::decode(one->contact().encode()));
  const falcon::test::Doorman door(contacts[0].controllerAddress, 3);
  contacts[0].controllerAddress = contacts[0].processAddress = door.address();
  const transport::Secret secret = *randomSecret();
  for (const BusPointer& one : all) one->meet(contacts, secret);
  EXPECT_TRUE(eventually([&] { return onePart(all, all[0]); }));
  EXPECT_EQ(door.left(), 0);
}

/// A member that says whatever it likes.
class Liar {
 public:
  /// Asks `target`, which expects who knows `secret`, to be admitted as `claimed`.
  Liar(const BusPointer& target, const transport::Secret& secret, ProcessId claimed) : claimed_(claimed) {
    const BusContact there = *BusContact::decode(target->contact().encode());
    auto socket = transport::connectWithHello(
        {}, there.processAddress, {transport::Purpose::bus, busKey(secret, there.process), secret, -1, {}}, 60s);
    if (!socket) throw std::runtime_error(std::string(socket.error().message()));
    channel_ = std::make_shared<MessageChannel>(reactor_, std::move(*socket));
    channel_->start(
        [this](std::string_view bytes) {
          BusFrame frame;
          if (BusFrame::decode(bytes, frame) && frame.kind == BusFrame::Kind::welcome) admitted_ = true;
        },
        [](const std::string&) {});
    say({.kind = BusFrame::Kind::request, .peers = {{claimed, reactor_->address(), secret}}});
  }
  ~Liar() { channel_->close(); }
  void say(const BusFrame& frame) { ASSERT_TRUE(channel_->send(frame.encode())); }
  bool isAdmitted() const { return admitted_; }
  ProcessId claimed() const { return claimed_; }

 private:
  const ProcessId claimed_;
  const std::shared_ptr<transport::Reactor> reactor_ = reactor();
  std::shared_ptr<MessageChannel> channel_;
  std::atomic<bool> admitted_{false};
};

/// A part of two, and a secret that its controller expects.
struct PartWithALiar : testing::Test {
  PartWithALiar() {
    meet(all);
    EXPECT_TRUE(eventually([&] { return onePart(all, all[0]); }));
    const std::vector<BusContact> contacts{*BusContact::decode(all[0]->contact().encode()),
                                           {outside, outside, loopback, loopback}};
    all[0]->meet(contacts, secret);
    log::reset();
  }
  ~PartWithALiar() override { log::reset(); }
  /// What the members get up to a text that says so.
  std::vector<std::string> textsOf(const BusPointer& from, const std::string& last) {
    std::vector<std::string> texts;
    while (const auto message = next(from, Kind::text)) {
      texts.push_back(message->bytes);
      if (message->bytes == last) break;
    }
    return texts;
  }

  static constexpr ProcessId outside = ProcessId{1} << 62;  // higher than those of ranks
  const SocketAddress loopback = *SocketAddress::parse("127.0.0.1:1");
  const Variable debug{"NCCL_DEBUG", "WARN"};
  const transport::Secret secret = *randomSecret();
  const std::vector<BusPointer> all = buses(2);
};

TEST_F(PartWithALiar, WhoClaimsToBeAnotherIsNotHeard) {
  testing::internal::CaptureStderr();
  {
    Liar liar(all[0], secret, outside);
    ASSERT_TRUE(eventually([&] { return liar.isAdmitted(); }));
    // In the controller's name to a member, in a member's to the controller, and that a member is gone.
    for (int i = 0; i < 3; ++i)
      liar.say({.kind = BusFrame::Kind::text, .from = all[0]->self(), .to = all[1]->self(), .bytes = "forged"});
    liar.say({.kind = BusFrame::Kind::text, .from = all[1]->self(), .bytes = "forged"});
    liar.say({.kind = BusFrame::Kind::bye, .from = all[1]->self()});
    liar.say({.kind = BusFrame::Kind::text, .from = outside, .to = everyone, .bytes = "to all"});
    for (const auto& one : all)
      liar.say({.kind = BusFrame::Kind::text, .from = outside, .to = one->self(), .bytes = "own"});
    for (const auto& one : all) EXPECT_EQ(textsOf(one, "own"), std::vector<std::string>{"own"});
    EXPECT_EQ(all[0]->members().size(), 3u);
  }
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("claims to be from"), std::string::npos) << said;
  EXPECT_EQ(said.find("claims to be from"), said.rfind("claims to be from")) << said;
}

TEST_F(PartWithALiar, NobodyTakesAMembersPlace) {
  Liar second(all[0], secret, all[1]->self()), first(all[0], secret, all[0]->self());
  std::this_thread::sleep_for(200ms);
  EXPECT_FALSE(first.isAdmitted());
  EXPECT_FALSE(second.isAdmitted());
  all[0]->to(all[1]->self(), "still here");
  EXPECT_EQ(textsOf(all[1], "still here"), std::vector<std::string>{"still here"});
}

TEST(Bus, ManyPartsThatMeetAtOnceInAnyOrderBecomeOne) {
  for (int round = 0; round < 10; ++round) {
    const auto all = buses(8);
    // A chain of communicators, formed at the same time: nobody is in all of them.
    std::vector<int> order{0, 1, 2, 3, 4, 5, 6};
    for (int i = 0; i < round; ++i) std::rotate(order.begin(), order.begin() + 3, order.end());
    if (round % 2) std::ranges::reverse(order);
    for (const int at : order) meet({all[static_cast<std::size_t>(at)], all[static_cast<std::size_t>(at) + 1]});
    ASSERT_TRUE(eventually([&] { return onePart(all, all[0]); })) << round;
  }
}

TEST(Bus, AKilledControllerIsReplaced) {
  // The controller is another process; it forms a part with two buses of this one over a pipe of contacts.
  int up[2], down[2];
  ASSERT_EQ(pipe(up), 0);
  ASSERT_EQ(pipe(down), 0);
  Process controller([&] {
    const auto own = bus(0);
    const std::string mine = own->contact().encode();
    [[maybe_unused]] auto written = ::write(up[1], mine.data(), mine.size());
    char bytes[4096];
    const auto length = ::read(down[0], bytes, sizeof bytes);
    WireReader reader(std::string_view(bytes, static_cast<std::size_t>(length)));
    std::vector<BusContact> contacts;
    for (int i = 0; i < 3; ++i) contacts.push_back(*BusContact::decode(reader.getString()));
    own->meet(contacts, transport::Secret{});
    pause();
    return 0;
  });
  ::close(up[1]);  // a child that fails is seen as the end of the pipe
  const auto one = bus(1), two = bus(2);
  char bytes[512];
  const auto length = ::read(up[0], bytes, sizeof bytes);
  const auto contact = BusContact::decode(std::string_view(bytes, static_cast<std::size_t>(length)));
  ASSERT_TRUE(contact);
  const std::vector<BusContact> contacts{*contact, one->contact(), two->contact()};
  WireWriter writer;
  for (const BusContact& each : contacts) writer.put(std::string_view(each.encode()));
  ASSERT_GT(::write(down[1], writer.bytes().data(), writer.bytes().size()), 0);
  one->meet(contacts, transport::Secret{});
  two->meet(contacts, transport::Secret{});
  ASSERT_TRUE(eventually([&] { return one->members().size() == 3 && two->members().size() == 3; }));
  EXPECT_EQ(two->controller(), contact->process);
  controller.signal(SIGKILL);
  EXPECT_TRUE(eventually([&] { return onePart({one, two}, one); }));
  for (const int end : {up[0], down[0], down[1]}) ::close(end);
}

}  // namespace
}  // namespace falcon::bootstrap
