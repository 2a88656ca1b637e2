// Nothing stays behind, and forked children do no harm.
#include <dirent.h>

#include <algorithm>
#include <filesystem>

#include "transport/doorbell.h"
#include "unit/transport/ports_world.h"

namespace falcon::transport::test {
namespace {

std::size_t entries(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::size_t mappings() {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  std::size_t count = 0;
  for (char line[4096]; std::fgets(line, sizeof line, maps);) count += std::strstr(line, "nccl-falcon") != nullptr;
  std::fclose(maps);
  return count;
}

// Of this process alone: /dev/shm is the whole machine's, and the transports put nothing into it (shared_segment.h).
struct Held {
  std::size_t files = entries("/proc/self/fd");
  std::size_t threads = entries("/proc/self/task");
  std::size_t segments = mappings();
  bool operator==(const Held&) const = default;
  /// Something has gone, and nothing has come.
  bool isLessThan(const Held& other) const {
    return *this != other && files <= other.files && threads <= other.threads && segments <= other.segments;
  }
  friend std::ostream& operator<<(std::ostream& out, const Held& held) {
    return out << held.files << " files, " << held.threads << " threads, " << held.segments << " segments";
  }
};

// A thread that was joined may be seen in /proc a moment longer: what counts is what stays for 50 ms.
Held settled() {
  Held held;
  for (int still = 0, looks = 0; still < 25 && looks < 1000; ++still, ++looks) {
    std::this_thread::sleep_for(2ms);
    const Held now;
    if (now != held) still = 0;
    held = now;
  }
  return held;
}

Held settledAs(const Held& wanted) {
  Held held = settled();
  for (int i = 0; i < 600 && held != wanted && !held.isLessThan(wanted); ++i) held = settled();
  return held;
}

TEST(Lifetime, HundredRoundsLeaveNothingBehind) {
  const ChunkBytes size(512);
  const auto round = [](int number) {
    for (const Medium medium : {Medium::sharedMemory, Medium::socket}) {
      World world(2, medium, 1000 + static_cast<CommunicatorId>(number));
      std::thread sender([&] { EXPECT_TRUE(ok(sendStream(*world.ports[0], {1, 0}, 1, 10))); });
      EXPECT_TRUE(ok(receiveStream(*world.ports[1], {0, 0}, 1, 10)));
      sender.join();
      // Some that the peer never opens, some that are still being connected when all ends.
      for (int channel = 1; channel < 4; ++channel) {
        EXPECT_TRUE(world.ports[0]->openSend({1, channel}));
        EXPECT_TRUE(world.ports[1]->openReceive({0, channel + 10}));
        EXPECT_TRUE(world.ports[0]->openSend({0, channel}));
      }
      if (number % 2 == 0) std::this_thread::sleep_for(1ms);
      if (number % 3 == 0) world.ports[1].reset();
    }
  };
  round(0);  // what a process has one of
  Held before = settled(), after;
  for (int looks = 0; looks < 3; ++looks) {
    for (int i = 1; i <= 100; ++i) round(i);
    after = settledAs(before);
    // On a busy machine what the first round left for longer than others was taken for what a process has one of.
    if (!after.isLessThan(before)) break;
    before = after;
  }
  EXPECT_EQ(after, before);
}

TEST(Lifetime, DestructionDuringConnectingIsSafe) {
  const ChunkBytes size(512);
  for (int i = 0; i < 200; ++i) {
    World world(2, i % 2 ? Medium::socket : Medium::sharedMemory, 5000 + static_cast<CommunicatorId>(i));
    for (int channel = 0; channel < 4; ++channel)
      EXPECT_TRUE(world.ports[i / 2 % 2]->openSend({1 - i / 2 % 2, channel}));
    std::this_thread::sleep_for(std::chrono::microseconds(i * 5));
    std::swap(world.ports[0], world.ports[i / 4 % 2]);
  }
}

TEST(Fork, AChildHasADoorbellAndAnIdentityOfItsOwn) {
  const std::string doorbell = processDoorbell().name();
  const auto identity = *processIdentity();
  EXPECT_EQ(processDoorbell().name(), doorbell);
  EXPECT_EQ(*processIdentity(), identity);
  const pid_t child = fork();
  if (child == 0) {
    const bool fresh = processDoorbell().name() != doorbell && *processIdentity() != identity;
    _exit(fresh ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// A data loader's child that destroys its copies and ends must not look like the parent's death.
TEST(Fork, AChildThatDestroysItsCopyDoesNotDisturbTheParent) {
  const ChunkBytes size(512);
  for (const Medium medium : {Medium::sharedMemory, Medium::socket}) {
    World world(2, medium);
    const auto exchange = [&](std::uint64_t stream) {
      std::thread sender([&] { EXPECT_TRUE(ok(sendStream(*world.ports[0], {1, 0}, stream, 20))); });
      EXPECT_TRUE(ok(receiveStream(*world.ports[1], {0, 0}, stream, 20)));
      sender.join();
    };
    exchange(1);
    const pid_t child = falcon::test::forkBesideSleepers();  // the reactors' threads are the point
    if (child == 0) {
      for (auto& ports : world.ports) ports.reset();
      _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    exchange(2);
  }
}

}  // namespace
}  // namespace falcon::transport::test
