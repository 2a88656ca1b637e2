// A job whose names (its own, the host's, a communicator's, a range's) are bytes that no exit takes as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "base/escaped.h"
#include "base/own_folder.h"
#include "instrument/call_log.h"
#include "instrument/range_log.h"
#include "jobs/command.h"
#include "metrics/command.h"
#include "print.h"
#include "record/command.h"
#include "report/json_lines.h"
#include "support/command.h"
#include "top/command.h"
#include "trace/command.h"

namespace falcon::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

/// No UTF-8, an escape sequence in one and in two bytes, a line's end, and what JSON, labels and HTML quote.
const std::string hostile =
    "x\xff\x1b[2J\xc2\x9b"
    "K\n\"\\'<b>&";

class HostileNames : public testing::Test {
 protected:
  HostileNames() {
    EXPECT_TRUE(makeOwnFolder(instrument::jobsFolder()));
    EXPECT_TRUE(makeOwnFolder(folder_));
    log_ = std::move(*instrument::CallLog::create(folder_ + "/rank-0.calls", {hostile, hostile, 0, 1}, 64));
    const int place = log_->add({.id = 7, .rank = 0, .name = hostile, .members = {{0, 0}}});
    CallRecord call;
    call.communicator = 7;
    call.rank = 0;
    call.enter = SystemClock::instance().now() - 2s;
    const auto flight = log_->enter(call, place);
    call.leave = call.enter + 1s;
    log_->leave(flight, call);
    call.sequence = 1;
    call.enter += 1s;
    log_->enter(call, place);  // and stays in it
    making_.emplace(log_->making({instrument::MakingKind::init, 9, 0, 2, hostile, SystemClock::instance().now() - 1s}));
    ranges_ = std::move(*instrument::RangeLog::create(folder_ + "/rank-0.ranges", 0));
    ranges_->showLast(ranges_->nameOf(hostile), 1ms, 1);
    Event event{.kind = EventKind::verdict, .action = hostile, .text = hostile};
    event.ranges.push_back({.name = hostile});
    std::ofstream(folder_ + "/events.jsonl") << report::toJson(event) << '\n';
  }
  ~HostileNames() override { fs::remove_all(folder_); }

  /// What `falcon` with these words prints, on stdout and then on stderr.
  static std::string said(AddCommand add, std::vector<std::string> words) {
    CLI::App app;
    int code = healthy;
    add(app, code);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    std::string problem;
    try {
      std::reverse(words.begin(), words.end());  // as CLI11 takes them
      app.parse(words);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    std::fflush(stdout);
    const std::string output = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    EXPECT_EQ(problem, "");
    return output;
  }
  static json saidJson(AddCommand add, std::vector<std::string> words) {
    const std::string output = said(add, std::move(words));
    EXPECT_TRUE(json::accept(output)) << output;
    EXPECT_EQ(validUtf8(output), output);
    expectHarmless(output);
    return json::parse(output, nullptr, false);
  }
  static void expectHarmless(const std::string& output) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) EXPECT_EQ(terminalText(line), line);
  }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }
  static std::string contentOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string name_ = "falcon-names-" + std::to_string(getpid());
  const std::string folder_ = instrument::jobFolder(name_);
  std::unique_ptr<instrument::CallLog> log_;
  std::optional<instrument::Making> making_;
  std::unique_ptr<instrument::RangeLog> ranges_;
};

TEST_F(HostileNames, InStatus) {
  const std::string text = said(addStatusCommand, {"status", name_});
  expectHarmless(text);
  EXPECT_THAT(text, HasSubstr(terminalText(hostile)));  // the last event's text
  const json shown = saidJson(addStatusCommand, {"status", name_, "--json"});
  ASSERT_EQ(shown.size(), 1u);
  EXPECT_EQ(shown[0]["ranks"][0]["host"], validUtf8(hostile));
  EXPECT_TRUE(shown[0]["ranks"][0]["ranges"].contains(validUtf8(hostile)));
  EXPECT_EQ(shown[0]["last_event"]["text"], validUtf8(hostile));
}

TEST_F(HostileNames, InAHang) {
  const std::string text = said(addStatusCommand, {"status", name_, "--hang", "--patience", "0"});
  expectHarmless(text);
  EXPECT_THAT(text, HasSubstr(terminalText(hostile)));  // the communicator
  const json shown = saidJson(addStatusCommand, {"status", name_, "--hang", "--patience", "0", "--json"});
  EXPECT_EQ(shown.at(0).at("ranks").at(0).at("makings").at(0).at("name"), validUtf8(hostile));
}

TEST_F(HostileNames, InTop) {
  expectHarmless(said(addTopCommand, {"top", name_, "--once"}));
  EXPECT_EQ(saidJson(addTopCommand, {"top", name_, "--json"}).at("ranks").at(0).at("host"), validUtf8(hostile));
}

TEST_F(HostileNames, InARecordingAndItsTrace) {
  const std::string recording = file("a\x1b[2J.recording"), trace = file("trace.json");
  expectHarmless(said(addRecordCommand, {"record", recording, "--job", name_}));
  EXPECT_EQ(saidJson(addRecordCommand, {"record", recording, "--job", name_, "--json"}).at("calls"), 1);
  const std::string hang = said(addStatusCommand, {"status", "--hang", "--recording", recording, "--patience", "0"});
  expectHarmless(hang);
  EXPECT_THAT(hang, HasSubstr("job " + terminalText(hostile)));
  saidJson(addTraceCommand, {"trace", recording});
  EXPECT_EQ(said(addTraceCommand, {"trace", recording, "--output", trace}), "");
  EXPECT_TRUE(json::accept(contentOf(trace)));
}

TEST_F(HostileNames, InMetrics) {
  const std::string text = said(addMetricsCommand, {"metrics", "--job", name_});
  EXPECT_EQ(validUtf8(text), text);
  const std::regex sample(R"re([a-z_]+\{([a-z_]+="([^"\\\n]|\\["\\n])*",?)+\} [0-9.e+-]+)re");
  std::istringstream lines(text);
  int samples = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    EXPECT_TRUE(std::regex_match(line, sample)) << line;
    samples += line.find("comm_name=\"" + labelValue(hostile) + "\"") != line.npos;
  }
  EXPECT_GT(samples, 0) << text;
}

TEST_F(HostileNames, InTheReport) {
  const std::string page = file("page.html");
  expectHarmless(said(addReportCommand, {"report", name_, "--output", page}));
  const std::string html = contentOf(page);
  EXPECT_EQ(validUtf8(html), html);
  EXPECT_THAT(html, Not(HasSubstr("<b>")));
  const std::string begin = "type=\"application/json\">";
  const std::size_t from = html.find(begin) + begin.size();
  const json data = json::parse(html.substr(from, html.find('<', from) - from));
  EXPECT_THAT(data.at("subtitle").get<std::string>(), HasSubstr(validUtf8(hostile)));  // the host
  EXPECT_EQ(data.at("marks").at(0).at("text"), validUtf8(hostile));
  expectHarmless(html);
}

TEST_F(HostileNames, WhereNoSuchJobIs) {
  const std::string text = said(addStatusCommand, {"status", hostile + "?"});
  expectHarmless(text);
  EXPECT_THAT(text, HasSubstr("no job named " + terminalText(hostile)));
}

TEST(Print, EscapesTextsAndKeepsTheLinesOfATable) {
  testing::internal::CaptureStdout();
  print(stdout, "{:>4} {}\n", 7, hostile);
  printLines(stdout, "a\x1b\nb");
  std::fflush(stdout);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "   7 " + terminalText(hostile) + "\na\\x1b\nb");
}

}  // namespace
}  // namespace falcon::tools
