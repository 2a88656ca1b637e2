// A job in training, and everything that people put beside it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "harness/json_schema.h"
#include "multi_rank/run_harness.h"

namespace falcon::tests {
namespace {

using nlohmann::json;

/// Four ranks, DP 2 x PP 2, until it is told to end.
class OutsideJob : public testing::Test {
 protected:
  OutsideJob() {
    EXPECT_TRUE(eventually(run_, [&] { return events().size() >= 2 && iterationsOf(0) > 0; })) << run_.errors();
  }
  ~OutsideJob() override {
    end();
    std::filesystem::remove_all(folder());
  }
  void end() {
    run_.signal(SIGTERM);
    run_.wait();
  }

  std::string folder() const { return "/dev/shm/nccl-falcon-" + std::to_string(getuid()) + "/" + name_; }
  std::vector<std::string> events() const { return linesOf(contentOf(folder() + "/events.jsonl")); }
  int iterationsOf(int rank) const {
    const auto status = json::parse(output(falconCommand({"status", name_, "--json"})), nullptr, false);
    if (!status.is_array() || status.empty()) return 0;
    for (const json& each : status[0]["ranks"])
      if (each["rank"] == rank) return each["iterations"];
    return 0;
  }
  static std::string output(std::vector<std::string> command) {
    Started program(std::move(command));
    program.wait();
    return program.output();
  }
  static bool has(const std::string& program) {
    return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
  }
  /// One that nobody listened at a moment ago.
  static std::string freeAddress() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(listener, reinterpret_cast<sockaddr*>(&address), size);
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
    close(listener);
    return "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  /// A program that listens at an address. Somebody else may be given it before the program is there: then it ends, and
  /// another address is tried.
  struct Listening {
    std::string address;
    std::unique_ptr<Started> program;
  };
  static Listening listening(const std::function<std::vector<std::string>(const std::string& address)>& command,
                             const std::function<bool(const Listening&)>& answers) {
    Listening made;
    for (int tries = 0; tries < 20; ++tries) {
      made.address = freeAddress();
      made.program = std::make_unique<Started>(command(made.address));
      if (eventually(*made.program, [&] { return answers(made); }) && made.program->running()) break;
    }
    return made;
  }

  const std::string name_ = "falcon-outside-" + std::to_string(getpid());
  TemporaryFolder temporary_;
  Started run_{falconCommand({"run", "-n", "4", "--", FALCON_TRAIN_BINARY, "--quiet", "--dp", "2", "--pp", "2",
                              "--micro-batches", "4", "--iterations", "1000000", "--duration", "600"}),
               {{"NCCL_FALCON", "1"},
                {"NCCL_FALCON_JOB", name_},
                {"NCCL_FALCON_SECRET", "never-to-be-seen"},
                {"NCCL_FALCON_METRICS", temporary_.file("falcon.prom")}}};
};

TEST_F(OutsideJob, ARealPrometheusScrapesEveryRank) {
  if (!has("prometheus") || !has("curl"))
    GTEST_SKIP() << "prometheus or curl is not installed (Debian packages; scripts/test installs them)";
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the HTTP server is a library of the system, of which the thread sanitizer sees one half";
#endif
  const auto metrics = [&](const std::string& address) {
    return falconCommand({"metrics", "--listen", address, "--job", name_});
  };
  const auto says = [](const Listening& its) { return its.program->errors().find("/metrics") != std::string::npos; };
  const Listening exporter = listening(metrics, says);
  ASSERT_TRUE(exporter.program->running()) << exporter.program->errors();

  std::ofstream(temporary_.file("prometheus.yml"))
      << "scrape_configs:\n  - job_name: nccl-falcon\n    honor_labels: true\n    scrape_interval: 1s\n"
         "    static_configs:\n      - targets: ['"
      << exporter.address << "']\n";
  const auto prometheusAt = [&](const std::string& address) -> std::vector<std::string> {
    return {"/usr/bin/env", "prometheus", "--config.file=" + temporary_.file("prometheus.yml"),
            "--storage.tsdb.path=" + temporary_.file("data"), "--web.listen-address=" + address};
  };
  const auto isReady = [](const Listening& its) {
    return output({"/usr/bin/env", "curl", "-sf", "http://" + its.address + "/-/ready"}).find("Prometheus") !=
           std::string::npos;
  };
  const Listening prometheus = listening(prometheusAt, isReady);
  ASSERT_TRUE(prometheus.program->running()) << prometheus.program->errors();
  const auto query = [&](const std::string& expression) -> json {
    const auto answer =
        json::parse(output({"/usr/bin/env", "curl", "-sfG", "http://" + prometheus.address + "/api/v1/query",
                            "--data-urlencode", "query=" + expression}),
                    nullptr, false);
    return answer.is_object() ? answer["data"]["result"] : json::array();
  };
  const std::string mine = "{job=\"" + name_ + "\"}";
  // Where the machine is busy one of its scrapes takes longer than a second, and until the next one nothing is there.
  const auto gives = [&](const std::string& expression, std::size_t series) {
    return eventually([&] { return query(expression).size() == series; });
  };
  ASSERT_TRUE(gives("nccl_falcon_iteration_seconds" + mine, 4)) << prometheus.program->errors();
  EXPECT_TRUE(gives("nccl_falcon_iteration_seconds" + mine + " > 0", 4));
  EXPECT_TRUE(gives("nccl_falcon_build_info" + mine, 4));
  EXPECT_TRUE(gives("nccl_falcon_failslow_active" + mine, 3));
  EXPECT_TRUE(gives("nccl_falcon_mitigations_total" + mine, 12));
  EXPECT_TRUE(gives("sum by (rank) (nccl_falcon_collective_duration_seconds_count" + mine + ") > 0", 4));

  exporter.program->signal(SIGTERM);
  EXPECT_EQ(exporter.program->wait(), 0);
  prometheus.program->signal(SIGTERM);
  prometheus.program->wait();
}

TEST_F(OutsideJob, TheControllersMetricsFileIsWhatPromtoolTakes) {
  if (!has("promtool")) GTEST_SKIP() << "promtool is not installed (Debian package prometheus)";
  const std::string file = temporary_.file("falcon.prom");
  ASSERT_TRUE(eventually(
      [&] { return contentOf(file).find("nccl_falcon_collective_duration_seconds_bucket") != std::string::npos; }));
  std::ofstream(temporary_.file("copy")) << contentOf(file);
  EXPECT_EQ(std::system(("promtool check metrics >&2 < " + temporary_.file("copy")).c_str()), 0);
}

TEST_F(OutsideJob, WatchHandsEveryEventOnAndEndsWithTheJob) {
  Started watch(falconCommand({"watch", name_, "--from-start", "--run", "cat >> " + temporary_.file("seen")}));
  Started hanging(falconCommand({"watch", name_, "--from-start", "--time-limit", "1", "--run", "sleep 1000"}));
  EXPECT_TRUE(eventually([&] { return linesOf(contentOf(temporary_.file("seen"))).size() >= 2; })) << watch.errors();
  end();
  EXPECT_EQ(watch.wait(), 0) << watch.errors();
  EXPECT_EQ(linesOf(contentOf(temporary_.file("seen"))), events());
  EXPECT_EQ(hanging.wait(), 1);
  EXPECT_NE(hanging.errors().find("took longer than 1 s and was killed"), std::string::npos) << hanging.errors();
  const json schema = json::parse(std::ifstream(FALCON_EVENT_SCHEMA));
  for (const std::string& line : events()) EXPECT_EQ(harness::violation(json::parse(line), schema), "") << line;
}

TEST_F(OutsideJob, ABundleHoldsEverythingButSecrets) {
  const std::string bundle = temporary_.file("case.tar.gz");
  Started report(falconCommand({"report", name_, "--bundle", bundle}));
  ASSERT_EQ(report.wait(), 0) << report.errors();
  EXPECT_EQ(std::filesystem::status(bundle).permissions() & std::filesystem::perms::others_read,
            std::filesystem::perms::none);
  const std::string unpacked = temporary_.file("unpacked");
  std::filesystem::create_directory(unpacked);
  ASSERT_EQ(std::system(("tar -xzf " + bundle + " -C " + unpacked).c_str()), 0);
  const auto content = [&](const std::string& name) { return contentOf(unpacked + "/falcon-bundle/" + name); };
  for (const char* name : {"events.jsonl", "rank-0.calls", "rank-3.calls", "versions.txt", "hang.json"})
    EXPECT_FALSE(content(name).empty()) << name;
  EXPECT_EQ(json::parse(content("status.json"))[0]["job"], name_);
  EXPECT_NE(content("metrics.txt").find("nccl_falcon_iteration_seconds{"), std::string::npos);
  const auto environment = json::parse(content("environment.json"));
  ASSERT_EQ(environment.size(), 4u);
  EXPECT_EQ(environment["rank 2"]["NCCL_FALCON_JOB"], name_);
  EXPECT_NE(contentOf("/proc/self/environ").size(), 0u);
  for (const auto& file : std::filesystem::directory_iterator(unpacked + "/falcon-bundle"))
    EXPECT_EQ(contentOf(file.path()).find("never-to-be-seen"), std::string::npos) << file.path();

  const std::string page = content("report.html");
  const std::string begin = "type=\"application/json\">";
  const std::size_t from = page.find(begin) + begin.size();
  const auto data = json::parse(page.substr(from, page.find('<', from) - from));
  EXPECT_EQ(data["heat"]["rows"].at(3), "rank 3");
  EXPECT_EQ(data["heat"]["columns"].at(0), "outside of the library");
  EXPECT_NE(data["waits"]["note"].get<std::string>().find("2 replicas of 2 pipeline stages of 1 tensor shards"),
            std::string::npos)
      << data["waits"]["note"];
  EXPECT_EQ(data["waits"]["ranks"].at(3), (json{{"rank", 3}, {"data", 1}, {"pipeline", 1}, {"tensor", 0}}));
}

TEST_F(OutsideJob, ABundleOfAnEndedJobHasItsSettings) {
  end();
  const std::string bundle = temporary_.file("case.tar.gz");
  Started report(falconCommand({"report", name_, "--bundle", bundle}));
  ASSERT_EQ(report.wait(), 0) << report.errors();
  const auto environment =
      json::parse(output({"/usr/bin/env", "tar", "-xzOf", bundle, "falcon-bundle/environment.json"}), nullptr, false);
  ASSERT_EQ(environment.size(), 4u) << environment;
  EXPECT_EQ(environment["rank 2"]["NCCL_FALCON_JOB"], name_);
  EXPECT_EQ(environment.dump().find("never-to-be-seen"), std::string::npos);
}

TEST(Outside, WrongWordsAreSaid) {
  const auto code = [](std::vector<std::string> words, const std::string& expected) {
    Started command(falconCommand(std::move(words)));
    const int result = command.wait();
    EXPECT_NE(command.errors().find(expected), std::string::npos) << command.errors();
    return result;
  };
  EXPECT_EQ(code({"metrics", "--listen", "0.0.0.0:9464"}, "not a loopback address"), 2);
  EXPECT_EQ(code({"metrics", "--listen", "here"}, "not an address and port"), 2);
  EXPECT_EQ(code({"metrics", "--job", "no-such-job"}, "no running job named no-such-job; of this user on this host"),
            1);
  EXPECT_EQ(code({"watch", "--kinds", "onset,bogus"}, "no event is of kind bogus; there are baseline-taken, "), 2);
  EXPECT_EQ(code({"watch", "no-such-job"}, "no running job named no-such-job"), 1);
  EXPECT_EQ(code({"watch", "--post", "ftp://x"}, "does not begin with http"), 2);
  EXPECT_EQ(code({"report", "no-such-job"}, "no job named no-such-job"), 1);
}

}  // namespace
}  // namespace falcon::tests
