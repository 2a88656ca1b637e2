// Programs that are started with the preload library before their NCCL.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/format.h"

namespace falcon::preload {

struct Outcome {
  int code = -1;
  std::string output, errors;
};

class Preload : public testing::Test {
 protected:
  Preload() { std::filesystem::create_directories(folder_); }
  ~Preload() override {
    std::filesystem::remove_all(folder_);
    // Another process of this number must not find it.
    std::filesystem::remove_all(fmt::format("/dev/shm/nccl-falcon-{}/{}", getuid(), job()));
  }

  std::string file(const char* name) const { return folder_ + "/" + name; }

  /// Runs a shell line with `environment` set for it.
  Outcome run(const std::string& environment, const std::string& command) const {
    const std::string line = fmt::format("env {} {} > {} 2> {}", environment, command, file("out"), file("err"));
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), contentOf("out"), contentOf("err")};
  }
  std::string contentOf(const char* name) const {
    std::ifstream stream(file(name));
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  std::string job() const { return fmt::format("preload-test-{}", getpid()); }
  std::string on() const {
    return fmt::format("LD_PRELOAD={} NCCL_FALCON=1 NCCL_FALCON_JOB={} NCCL_FALCON_EVENTS={}", FALCON_PRELOAD, job(),
                       file("events"));
  }

 private:
  const std::string folder_ =
      (std::filesystem::temp_directory_path() / fmt::format("falcon-preload-{}", getpid())).string();
};

inline const std::string off = "LD_PRELOAD=" FALCON_PRELOAD;

}  // namespace falcon::preload
