#include "train_job.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace falcon::train_test {

namespace {

using namespace std::chrono_literals;

}  // namespace

ScratchFolder::ScratchFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "falcon-train-XXXXXX";
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

TrainJob::TrainJob(int ranks, std::vector<std::string> arguments, const Variables& variables) {
  arguments.insert(arguments.begin(), FALCON_TRAIN_BINARY);
  Variables all = variables;
  if (ranks > 0) {
    all.emplace_back("WORLD_SIZE", std::to_string(ranks));
    all.emplace_back("MASTER_ADDR", "127.0.0.1");
    all.emplace_back("MASTER_PORT", std::to_string(port_.number()));
  }
  for (int rank = 0; rank < std::max(ranks, 1); ++rank) {
    Variables own = all;
    if (ranks > 0) own.emplace_back("RANK", std::to_string(rank));
    processes_.push_back(start(rank, arguments, own));
  }
}

TrainJob::~TrainJob() {
  wait(0s);
}

pid_t TrainJob::start(int rank, const std::vector<std::string>& arguments, const Variables& variables) {
  const std::string errorFile = folder_.file("stderr." + std::to_string(rank));
  std::vector<char*> pointers;
  for (const auto& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  for (const char* inherited : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    ::unsetenv(inherited);
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  const int errors = ::open(errorFile.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int nothing = ::open("/dev/null", O_WRONLY);
  ::dup2(nothing, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execv(pointers[0], pointers.data());
  ::_exit(127);
}

void TrainJob::kill(int rank) const {
  ::kill(processes_.at(rank), SIGKILL);
}

std::vector<int> TrainJob::wait(std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::vector<int> codes;
  for (const pid_t process : processes_) {
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(process, &status, WNOHANG)) == 0 && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(5ms);
    if (ended == 0) {
      ::kill(process, SIGKILL);
      ::waitpid(process, &status, 0);
      codes.push_back(-1);
    } else {
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
  }
  processes_.clear();
  return codes;
}

std::string TrainJob::errors(int rank) const {
  std::ifstream file(folder_.file("stderr." + std::to_string(rank)));
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<LoggedIteration> readLog(const std::string& path, Growth growth) {
  std::vector<LoggedIteration> lines;
  if (growth == Growth::grows && !std::filesystem::exists(path)) return lines;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    if (growth == Growth::grows && file.eof()) break;  // the last line is in the making
    const auto json = nlohmann::json::parse(line, nullptr, false);
    EXPECT_FALSE(json.is_discarded()) << path << ": " << line;
    if (json.is_discarded()) break;
    lines.push_back({json.at("iteration"), json.at("loss"), json.at("start"), json.at("end"), json.at("microBatches")});
  }
  return lines;
}

}  // namespace falcon::train_test
