#include "watch/event_handler.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace falcon::watch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class EventHandlerTest : public testing::Test {
 protected:
  EventHandlerTest() { fs::create_directories(folder_); }
  ~EventHandlerTest() override { fs::remove_all(folder_); }

  std::unique_ptr<EventHandler> shell(const std::string& command, std::chrono::milliseconds limit = 60s,
                                      std::size_t mostWaiting = 1000) {
    return std::make_unique<EventHandler>(
        HandlerRules{"the command", limit, mostWaiting},
        [command](const std::string& line) { return deliveryByShell(command, line); },
        [this](const std::string& what) { complaints_.push_back(what); });
  }
  static bool tickUntilIdle(EventHandler& handler) {
    for (int i = 0; i < 6000 && !handler.idle(); ++i, std::this_thread::sleep_for(10ms))
      handler.tick(std::chrono::steady_clock::now());
    return handler.idle();
  }
  std::string contentOf(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path folder_ = fs::temp_directory_path() / ("falcon-handler-" + std::to_string(getpid()));
  std::vector<std::string> complaints_;
};

TEST_F(EventHandlerTest, GivesEachEventInOrderOnStdin) {
  const auto handler = shell("{ printf '%s ' $FALCON_EVENT_KIND; cat; } >> " + (folder_ / "seen").string());
  handler->add(R"({"kind":"onset"})");
  handler->add(R"({"kind":"relief"})");
  ASSERT_TRUE(tickUntilIdle(*handler));
  EXPECT_EQ(contentOf("seen"), "onset {\"kind\":\"onset\"}\nrelief {\"kind\":\"relief\"}\n");
  EXPECT_EQ(handler->failures(), 0);
}

TEST_F(EventHandlerTest, DoesNotWaitForWhoDoesNotReadOrEnd) {
  const auto handler = shell("sleep 1000");
  for (int i = 0; i < 10; ++i) handler->add("{\"kind\":\"onset\",\"text\":\"" + std::string(1 << 20, 'x') + "\"}");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) handler->tick(std::chrono::steady_clock::now());
  EXPECT_LT(std::chrono::steady_clock::now() - start, 30s);  // and not for a thousand
  EXPECT_FALSE(handler->idle());
}

TEST_F(EventHandlerTest, WhatTakesTooLongIsKilledWithItsChildrenAndTheNextIsRun) {
  const auto handler =
      shell("grep -q hang || exit 0; sleep 1000 & echo $! > " + (folder_ / "child").string() + "; wait", 2s);
  handler->add(R"({"kind":"hang"})");
  handler->add(R"({"kind":"onset"})");
  // The time is the test's: what is only slow to start is not taken for what hangs.
  std::chrono::steady_clock::time_point now{};
  const auto tickUntil = [&](const auto& done) {
    for (int i = 0; i < 6000 && !done(); ++i, std::this_thread::sleep_for(10ms)) handler->tick(now);
    return done();
  };
  ASSERT_TRUE(tickUntil([&] { return contentOf("child").ends_with('\n'); }));
  now += 1999ms;
  handler->tick(now);
  EXPECT_EQ(handler->failures(), 0);
  now += 1ms;
  ASSERT_TRUE(tickUntil([&] { return handler->idle(); }));
  EXPECT_EQ(handler->failures(), 1);
  ASSERT_EQ(complaints_.size(), 1u);
  EXPECT_NE(complaints_[0].find("longer than 2 s"), std::string::npos) << complaints_[0];
  const pid_t child = std::atoi(contentOf("child").c_str());
  ASSERT_GT(child, 0);
  bool gone = false;
  for (int i = 0; i < 6000 && !gone; ++i, std::this_thread::sleep_for(10ms)) {
    std::ifstream stat("/proc/" + std::to_string(child) + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    gone = text.empty() || text.find(") Z") != std::string::npos;
  }
  EXPECT_TRUE(gone);
}

TEST_F(EventHandlerTest, SaysHowItFailed) {
  for (const char* command : {"exit 3", "kill -9 $$", "/no/such/program"}) {
    const auto handler = shell(command);
    handler->add(R"({"kind":"onset"})");
    ASSERT_TRUE(tickUntilIdle(*handler));
    EXPECT_EQ(handler->failures(), 1) << command;
  }
  EventHandler none(
      {"the post", 10s, 10},
      [](const std::string&) {
        return Delivery{{"/no/such/program"}, ""};
      },
      [this](const std::string& what) { complaints_.push_back(what); });
  none.add("{}");
  ASSERT_TRUE(tickUntilIdle(none));
  ASSERT_EQ(complaints_.size(), 4u);
  EXPECT_EQ(complaints_[0], "the command failed with code 3 (event \"onset\")");
  EXPECT_EQ(complaints_[1], "the command was ended by signal 9 (event \"onset\")");
  EXPECT_EQ(complaints_[2], "the command failed with code 127 (event \"onset\")");
  EXPECT_NE(complaints_[3].find("cannot be started: /no/such/program: No such file"), std::string::npos);
}

TEST_F(EventHandlerTest, DropsTheOldestWhereTooManyWait) {
  const auto handler = shell("cat >> " + (folder_ / "seen").string(), 60s, 3);
  for (int i = 0; i < 5; ++i) handler->add("{\"kind\":\"" + std::to_string(i) + "\"}");
  ASSERT_TRUE(tickUntilIdle(*handler));
  EXPECT_EQ(contentOf("seen"), "{\"kind\":\"2\"}\n{\"kind\":\"3\"}\n{\"kind\":\"4\"}\n");
  EXPECT_EQ(complaints_.size(), 2u);
}

TEST(PostDelivery, TellsTheAddressByStdinOnly) {
  const Delivery delivery = deliveryByPost("https://hooks.example/\"x\"?token=abc", 10s, R"({"text":"a \"b\""})");
  for (const std::string& word : delivery.command) EXPECT_EQ(word.find("abc"), std::string::npos);
  EXPECT_NE(delivery.input.find(R"(url = "https://hooks.example/\"x\"?token=abc")"), std::string::npos);
  EXPECT_NE(delivery.input.find(R"(data-binary = "{\"text\":\"a \\\"b\\\"\"}")"), std::string::npos);
  EXPECT_NE(delivery.input.find("max-time = 10.000"), std::string::npos);
}

}  // namespace
}  // namespace falcon::watch
