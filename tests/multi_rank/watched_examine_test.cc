// `falcon doctor --attach` on a real job: it is held, tested, and goes on as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "multi_rank/watched_job.h"

namespace falcon::tests {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// Whether somebody is slow depends on what else this machine does: both codes are right, but must fit what is said.
TEST(DoctorAttached, TestsTheRanksAndLinksOfARunningJob) {
  TemporaryFolder folder;
  WatchedJob job{"until", {folder.file("end")}};
  const auto runs = [&] {
    const Said said({"status", job.name, "--json"});
    return said.json.is_array() && said.json.at(0).at("ranks").size() == 4 &&
           said.json.at(0).at("ranks").at(3).at("calls") > 0;
  };
  ASSERT_TRUE(eventually(runs)) << job.job.errors();
  for (int time = 0; time < 2; ++time) {
    const Said said({"doctor", "--attach", job.name, "--json"});
    ASSERT_THAT(said.code, testing::AnyOf(0, 3)) << said.errors;
    EXPECT_EQ(said.json.at("healthy"), said.code == 0);
    EXPECT_EQ(said.json.at("slow").empty(), said.code == 0);
    EXPECT_TRUE(said.json.at("product").is_null());  // of a running job nobody asked whose it uses
    ASSERT_EQ(said.json.at("ranks").size(), 4u);
    for (const json& rank : said.json.at("ranks"))
      for (const char* figure : {"f32_gflops", "memory_bytes_per_s", "processors"})
        EXPECT_GT(rank.at(figure), 0) << figure;
    // Both directions of the ring of all, and of the pairs 0 with 2 and 1 with 3.
    std::set<std::pair<int, int>> links;
    for (const json& link : said.json.at("links"))
      if (link.at("status") == "measured") links.emplace(link.at("from"), link.at("to"));
    EXPECT_EQ(links.size(), 12u);
    EXPECT_THAT(said.json.at("notes").dump(), HasSubstr("was held for"));
  }
  const Said table({"doctor", "--attach", job.name});
  EXPECT_THAT(table.output, HasSubstr("4 ranks on 1 nodes"));
  // The ranks check every sum.
  std::ofstream(folder.file("end")) << "now";
  EXPECT_EQ(job.job.wait(), 0) << job.job.errors();
  const Said late({"doctor", "--attach", job.name});
  EXPECT_EQ(late.code, 1);
  EXPECT_THAT(late.errors, HasSubstr("no running job"));
}

// The job answers later, to nobody.
TEST(DoctorAttached, LeavesNoAnswerBehindWhenASignalEndsIt) {
  namespace fs = std::filesystem;
  TemporaryFolder folder;
  WatchedJob job{"until", {folder.file("end")}};
  const auto status = [&] { return Said({"status", job.name, "--json"}).json; };
  ASSERT_TRUE(eventually([&] {
    const json said = status();
    return said.is_array() && said.at(0).at("ranks").size() == 4 && said.at(0).at("ranks").at(3).at("calls") > 0;
  })) << job.job.errors();
  Started doctor(falconCommand({"doctor", "--attach", job.name}));
  const std::string where = "/proc/" + std::to_string(doctor.process()) + "/syscall";
  const std::string waits = std::to_string(SYS_rt_sigtimedwait) + " ";
  ASSERT_TRUE(eventually([&] { return contentOf(where).starts_with(waits) || !doctor.running(); }));
  doctor.signal(SIGINT);
  EXPECT_EQ(doctor.wait(), 128 + SIGINT);
  EXPECT_EQ(doctor.errors(), "falcon doctor: ended by signal 2\n");
  ASSERT_TRUE(
      eventually([&] { return status().at(0).at("last_event").dump().find("s to be examined") != std::string::npos; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the file comes after the event
  const auto hasAnswer = [&] {
    for (const auto& file :
         fs::directory_iterator("/dev/shm/nccl-falcon-" + std::to_string(::getuid()) + "/" + job.name))
      if (file.path().extension() == ".examination") return true;
    return false;
  };
  EXPECT_TRUE(eventually([&] { return !hasAnswer(); }));
}

TEST(DoctorAttached, RefusesASuspendedJobAndWrongOptions) {
  TemporaryFolder folder;
  WatchedJob job{"until", {folder.file("end")}};
  ASSERT_TRUE(eventually([&] { return Said({"suspend", job.name, "--for", "600"}).code == 0; })) << job.job.errors();
  const Said said({"doctor", "--attach", job.name});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.errors, HasSubstr("is suspended"));
  EXPECT_EQ(Said({"doctor", "--attach", job.name, "-n", "2"}).code, 2);
  EXPECT_EQ(Said({"resume", job.name}).code, 0);
}

}  // namespace
}  // namespace falcon::tests
