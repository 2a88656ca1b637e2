#include "instrument/call_log_view.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace falcon::instrument {
namespace {

constexpr std::uint32_t capacity = 64;
constexpr std::size_t all = SIZE_MAX;

std::unique_ptr<CallLog> makeLog(const std::string& path = "") {
  auto log = CallLog::create(path, {"job", "host", 3, 8}, capacity);
  EXPECT_TRUE(log);
  return std::move(*log);
}

CallRecord numbered(std::uint64_t number) {
  CallRecord record;
  record.sequence = number;
  record.count = 3 * number;
  return record;
}

void write(CallLog& log, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t i = first; i < first + count; ++i) log.write(numbered(i));
}

void expectNumbers(const std::vector<CallRecord>& records, std::uint64_t first, std::size_t count) {
  ASSERT_EQ(records.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(records[i].sequence, first + i);
    EXPECT_EQ(records[i].count, 3 * (first + i));
  }
}

TEST(CallLog, IsReadInOrderAndInParts) {
  const auto log = makeLog();
  std::vector<CallRecord> records;
  std::uint64_t next = 0;
  EXPECT_EQ(log->readFrom(next, records, all), 0u);
  EXPECT_TRUE(records.empty());
  write(*log, 0, 50);
  EXPECT_EQ(log->readFrom(next, records, 20), 0u);
  expectNumbers(records, 0, 20);
  write(*log, 50, 20);  // overwrites what was read
  EXPECT_EQ(log->readFrom(next, records, all), 0u);
  expectNumbers(records, 0, 70);
}

TEST(CallLog, AnOverrunIsCountedAndTheNewestAreRead) {
  const auto log = makeLog();
  std::vector<CallRecord> records;
  std::uint64_t next = 0;
  write(*log, 0, 10);
  EXPECT_EQ(log->readFrom(next, records, 4), 0u);
  write(*log, 10, 200);
  records.clear();
  EXPECT_EQ(log->readFrom(next, records, 16), 210u - 4 - 16);
  expectNumbers(records, 194, 16);
  records.clear();
  EXPECT_EQ(log->readFrom(next, records, all), 0u);
  EXPECT_TRUE(records.empty());
}

// Whatever a reader gets while the writer overtakes it is whole, and every record is either read or counted as missed.
TEST(CallLog, RecordsAreWholeUnderOverruns) {
  const auto log = makeLog();
  constexpr std::uint64_t written = 200'000;
  std::thread writer([&] { write(*log, 0, written); });
  std::uint64_t next = 0, lost = 0, read = 0;
  std::vector<CallRecord> records;
  while (next < written) {
    records.clear();
    lost += log->readFrom(next, records, 40);
    read += records.size();
    for (const CallRecord& record : records) EXPECT_EQ(record.count, 3 * record.sequence);
  }
  writer.join();
  EXPECT_EQ(read + lost, written);
}

TEST(CallLog, AnOutsiderSeesTheNewestAndMayLeaveACommand) {
  const std::string path = testing::TempDir() + "falcon-log-" + std::to_string(getpid());
  const auto log = makeLog(path);
  write(*log, 0, 100);
  const auto view = readCallLog(path, 5);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->identity.job, "job");
  EXPECT_EQ(view->identity.jobRank, 3);
  EXPECT_EQ(view->calls, 100u);
  expectNumbers(view->latest, 95, 5);
  ASSERT_TRUE(sendCommand(path, JobCommand::off));
  EXPECT_EQ(log->header().command.load(), static_cast<std::uint32_t>(JobCommand::off));

  std::filesystem::resize_file(path, 5000);
  const auto cut = readCallLog(path, 5);
  ASSERT_FALSE(cut);
  EXPECT_NE(cut.error().message().find("damaged"), std::string::npos) << cut.error().message();
  std::ofstream(path, std::ios::trunc) << std::string(8192, 'x');
  EXPECT_FALSE(readCallLog(path, 5));
  std::filesystem::remove(path);
  EXPECT_FALSE(readCallLog(path, 5));
}

}  // namespace
}  // namespace falcon::instrument
