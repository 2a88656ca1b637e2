// Calls in flight, communicators and damage, as an outsider sees them.
#include "instrument/call_log_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "instrument/rank_snapshot.h"
#include "instrument/recording.h"

namespace falcon::instrument {
namespace {

using testing::SizeIs;

/// A log in a file that goes with the object.
struct LogFile {
  LogFile() : path(testing::TempDir() + "falcon-view-" + std::to_string(getpid())) {
    auto made = CallLog::create(path, {"job", "host", 3, 8}, 64);
    EXPECT_TRUE(made);
    log = std::move(*made);
  }
  ~LogFile() { std::filesystem::remove(path); }
  CallLogView view() const {
    auto seen = readCallLog(path, 100);
    EXPECT_TRUE(seen) << seen.error().message();
    return std::move(*seen);
  }
  const std::string path;
  std::unique_ptr<CallLog> log;
};

CommunicatorEntry communicator(CommunicatorId id, Rank rank, int size) {
  CommunicatorEntry entry{id, rank, 0, false, "dp", {}};
  for (int other = 0; other < size; ++other) entry.members.push_back({10 + other, 0});
  return entry;
}

CallRecord allReduce(CommunicatorId id, std::uint64_t sequence) {
  CallRecord call;
  call.communicator = id;
  call.sequence = sequence;
  call.enter = 5s + sequence * 1ms;
  return call;
}

CallRecord message(Operation operation, CommunicatorId id, Rank peer, std::uint64_t sequence) {
  CallRecord call = allReduce(id, sequence);
  call.operation = operation;
  call.peer = peer;
  return call;
}

TEST(CallLogView, ShowsWhatIsBeingMadeAsLongAsItIs) {
  const LogFile file;
  EXPECT_THAT(file.view().makings, SizeIs(0));
  {
    Making making = file.log->making({MakingKind::split, 77, 2, 100, "dp", 5s});
    const Making other = file.log->making({MakingKind::init, 78, 0, 4, std::string(100, 'x'), 6s});
    making.arrived(std::vector<Rank>{0, 63, 64, 99, 5000, -1});
    making.met();
    const CallLogView seen = file.view();
    ASSERT_THAT(seen.makings, SizeIs(2));
    EXPECT_EQ(seen.makings[1].name.size(), 63u);
    const std::string image = imageOf(seen);
    std::vector<std::uint64_t> words(image.size() / 8);
    std::memcpy(words.data(), image.data(), image.size());
    const auto recorded = viewOf(std::as_bytes(std::span(words)), "recorded", 0);
    ASSERT_TRUE(recorded);
    for (const MakingView& view : {seen.makings[0], recorded->makings.at(0)}) {
      EXPECT_EQ(view.kind, MakingKind::split);
      EXPECT_EQ(view.key, 77u);
      EXPECT_EQ(view.rank, 2);
      EXPECT_EQ(view.size, 100);
      EXPECT_EQ(view.enter.count(), Nanoseconds(5s).count());
      EXPECT_TRUE(view.met);
      EXPECT_EQ(view.name, "dp");
      EXPECT_THAT(view.arrived, testing::ElementsAre(0, 63, 64, 99));
    }
  }
  EXPECT_THAT(file.view().makings, SizeIs(0));
}

TEST(CallLogView, ShowsNoMoreMakingsThanThereIsRoomFor) {
  const LogFile file;
  std::vector<Making> makings;
  for (int i = 0; i < 100; ++i) makings.push_back(file.log->making({MakingKind::init, 1, 0, 2, "", 5s}));
  makings.back().met();  // of one that is not shown
  EXPECT_THAT(file.view().makings, SizeIs(64));
  makings.erase(makings.begin(), makings.begin() + 10);
  EXPECT_THAT(file.view().makings, SizeIs(54));
}

TEST(CallLogView, KeepsTheNewestTransfersAlsoInARecording) {
  LogFile file;
  EXPECT_THAT(file.view().transfers, SizeIs(0));
  constexpr std::uint64_t many = 5000;
  for (std::uint64_t i = 0; i < many; ++i)
    file.log->write(TransferTiming{.communicator = 7, .sequence = i, .channel = 1, .peer = 2, .start = 5s, .stop = 6s});
  const CallLogView view = file.view();
  ASSERT_GT(view.transfers.size(), 100u);
  ASSERT_LT(view.transfers.size(), many);
  for (std::size_t i = 0; i < view.transfers.size(); ++i)
    EXPECT_EQ(view.transfers[i].sequence, many - view.transfers.size() + i);
  const std::string image = imageOf(view);
  std::vector<std::uint64_t> words(image.size() / sizeof(std::uint64_t));
  std::memcpy(words.data(), image.data(), image.size());
  const auto again = viewOf(std::as_bytes(std::span(words)), "image", 100);
  ASSERT_TRUE(again) << again.error().message();
  ASSERT_EQ(again->transfers.size(), view.transfers.size());
  EXPECT_EQ(again->transfers.front().sequence, view.transfers.front().sequence);
  EXPECT_EQ(again->transfers.back().stop, 6s);
}

TEST(CallLogView, ShowsACallFromItsEntryToItsEnd) {
  LogFile file;
  const int place = file.log->add(communicator(7, 2, 4));
  CallRecord call = allReduce(7, 41);
  const Flight flight = file.log->enter(call, place);
  EXPECT_EQ(call.thread, static_cast<std::uint32_t>(gettid()));
  CallLogView view = file.view();
  ASSERT_THAT(view.inFlight, SizeIs(1));
  EXPECT_EQ(view.inFlight[0].sequence, 41u);
  EXPECT_EQ(view.inFlight[0].enter, call.enter);
  EXPECT_TRUE(view.latest.empty());
  ASSERT_THAT(view.communicators, SizeIs(1));
  EXPECT_EQ(view.communicators[0].collectives, 42u);
  EXPECT_EQ(view.communicators[0].lastEnter, call.enter);
  call.leave = 6s;
  file.log->leave(flight, call);
  view = file.view();
  EXPECT_TRUE(view.inFlight.empty());
  ASSERT_THAT(view.latest, SizeIs(1));
  EXPECT_EQ(view.latest[0].leave, 6s);
}

TEST(CallLogView, ShowsCommunicatorsWithTheirMembersAndMessages) {
  LogFile file;
  const int first = file.log->add(communicator(7, 2, 4));
  const int second = file.log->add(communicator(8, 0, 3));
  CallRecord sent = message(Operation::send, 8, 2, 16), received = message(Operation::receive, 8, 1, 4);
  file.log->enter(sent, second);
  file.log->enter(received, second);
  CallLogView view = file.view();
  ASSERT_THAT(view.communicators, SizeIs(2));
  EXPECT_EQ(view.communicators[0].name, "dp");
  EXPECT_EQ(view.communicators[0].rank, 2);
  EXPECT_EQ(view.communicators[0].collectives, 0u);
  ASSERT_THAT(view.communicators[0].members, SizeIs(4));
  EXPECT_EQ(view.communicators[0].members[3].jobRank, 13);
  ASSERT_THAT(view.communicators[1].members, SizeIs(3));
  EXPECT_EQ(view.communicators[1].members[2].sent, 17u);
  EXPECT_EQ(view.communicators[1].members[1].received, 5u);
  file.log->remove(7, 2);
  view = file.view();
  EXPECT_FALSE(view.communicators[0].live);
  EXPECT_TRUE(view.communicators[1].live);
  EXPECT_NE(first, second);
}

TEST(CallLogView, KeepsTheFirstFailureOfACommunicator) {
  LogFile file;
  const int place = file.log->add(communicator(7, 2, 4));
  for (const std::uint64_t number : {5u, 6u}) {
    CallRecord call = allReduce(7, number);
    const Flight flight = file.log->enter(call, place);
    file.log->fail(flight, call, place);
  }
  const CallLogView view = file.view();
  EXPECT_TRUE(view.inFlight.empty());
  EXPECT_TRUE(view.latest.empty());
  ASSERT_TRUE(view.communicators[0].failure);
  EXPECT_EQ(view.communicators[0].failure->sequence, 5u);
}

// Communicators come and go without end: there is always room, and the members of those that live stay right.
TEST(CallLogView, RoomOfCommunicatorsThatAreGoneIsUsedAgain) {
  LogFile file;
  ASSERT_NE(file.log->add(communicator(1, 0, 100)), noPlace);
  for (CommunicatorId id = 2; id < 2000; ++id) {
    ASSERT_NE(file.log->add(communicator(id, 0, 1 + static_cast<int>(id % 400))), noPlace) << id;
    if (id > 10) file.log->remove(id - 8, 0);
  }
  int live = 0;
  for (const CommunicatorView& view : file.view().communicators) {
    if (!view.live) continue;
    ++live;
    ASSERT_THAT(view.members, SizeIs(view.id == 1 ? 100 : 1 + view.id % 400));
    for (int rank = 0; rank < view.size; ++rank) EXPECT_EQ(view.members[rank].jobRank, 10 + rank);
  }
  EXPECT_EQ(live, 10);
}

TEST(CallLogView, WithoutRoomCallsAreStillLogged) {
  LogFile file;
  CallRecord call = allReduce(7, 1);
  std::vector<Flight> flights;
  for (int i = 0; i < 2000; ++i) flights.push_back(file.log->enter(call, noPlace));
  EXPECT_GT(file.view().flightsMissed, 0u);
  EXPECT_THAT(file.view().inFlight, SizeIs(2000 - file.view().flightsMissed));
  for (const Flight flight : flights) file.log->leave(flight, call);
  EXPECT_TRUE(file.view().inFlight.empty());
  EXPECT_EQ(file.view().calls, 2000u);
  EXPECT_NE(file.log->add(communicator(9, 0, 9000)), noPlace);
  EXPECT_TRUE(file.view().communicators[0].members.empty());
  EXPECT_EQ(file.view().communicators[0].size, 9000);
}

TEST(CallLogView, ThreadsDoNotMeetInTheTableOfCallsInFlight) {
  LogFile file;
  constexpr int each = 2000;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < each; ++i) {
        CallRecord call = allReduce(static_cast<CommunicatorId>(thread), static_cast<std::uint64_t>(i));
        const Flight flight = file.log->enter(call, noPlace);
        ASSERT_NE(flight, noFlight);
        call.leave = call.enter;
        file.log->leave(flight, call);
      }
    });
  while (file.log->header().head.load() < 4 * each)
    for (const CallRecord& call : file.view().inFlight) EXPECT_EQ(call.enter, 5s + call.sequence * 1ms);
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(file.view().inFlight.empty());
}

TEST(CallLogView, SeesTransfersOfSeveralThreadsWhole) {
  LogFile file;
  constexpr std::uint64_t each = 400;  // all together fewer than the ring holds
  const auto write = [&](CommunicatorId id) {
    for (std::uint64_t i = 0; i < each; ++i)
      file.log->write(TransferTiming{.communicator = id, .sequence = i, .bytes = id * each + i, .start = i * 1ms});
  };
  const auto expectWhole = [](const TransferTiming& transfer) {
    EXPECT_EQ(transfer.bytes, transfer.communicator * each + transfer.sequence);
    EXPECT_EQ(transfer.start, transfer.sequence * 1ms);
  };
  std::vector<std::thread> threads;
  for (CommunicatorId id = 0; id < 4; ++id) threads.emplace_back(write, id);
  while (file.view().transfers.size() < 4 * each)
    for (const TransferTiming& transfer : file.view().transfers) expectWhole(transfer);
  for (std::thread& thread : threads) thread.join();
  std::map<CommunicatorId, std::uint64_t> next;
  for (const TransferTiming& transfer : file.view().transfers) {
    expectWhole(transfer);
    EXPECT_EQ(transfer.sequence, next[transfer.communicator]++) << "a thread's own are in order";
  }
  EXPECT_EQ(next.size(), 4u);
}

TEST(CallLogView, RefusesTablesThatLieOutsideOfTheFile) {
  LogFile file;
  file.log->add(communicator(7, 2, 4));
  std::ifstream stream(file.path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  std::vector<std::uint64_t> copy(whole.size() / 8 + 1);
  const auto viewOfCopy = [&](std::size_t bytes) {
    return viewOf({reinterpret_cast<const std::byte*>(copy.data()), bytes}, "copy", 10);
  };
  const auto reset = [&] { std::memcpy(copy.data(), whole.data(), whole.size()); };
  auto* header = reinterpret_cast<CallLogHeader*>(copy.data());
  reset();
  EXPECT_TRUE(viewOfCopy(whole.size()));
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 997) EXPECT_FALSE(viewOfCopy(bytes)) << bytes;
  for (CallLogSection& section : header->sections) {
    if (section.count == 0) continue;
    for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{whole.size()}, std::uint64_t{4097}}) {
      reset();
      section.offset = offset;
      EXPECT_FALSE(viewOfCopy(whole.size()));
    }
    reset();
    section.count = UINT32_MAX;
    EXPECT_FALSE(viewOfCopy(whole.size()));
  }
  reset();
  header->version = 1;
  const auto other = viewOfCopy(whole.size());
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("version 1"), std::string::npos) << other.error().message();
}

TEST(CallLogView, TellsOneThatLeftFromOneThatRuns) {
  LogFile file;
  EXPECT_EQ(processStateOf(file.view()), ProcessState::alive);
  file.log->dropRecords();
  EXPECT_EQ(processStateOf(file.view()), ProcessState::ended);
}

// What led to a failure is asked for afterwards.
TEST(CallLogView, RecordsOfOneThatLeftAreKeptWhereACallFailed) {
  for (const bool failed : {false, true}) {
    LogFile file;
    const int place = file.log->add(communicator(7, 2, 4));
    CallRecord call = allReduce(7, 0);
    file.log->leave(file.log->enter(call, place), call);
    if (failed) file.log->fail(file.log->enter(call, place), call, place);
    file.log->dropRecords();
    EXPECT_THAT(file.view().latest, SizeIs(failed ? 1 : 0));
  }
}

}  // namespace
}  // namespace falcon::instrument
