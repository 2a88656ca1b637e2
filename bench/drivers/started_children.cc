// How long a child process takes that does nothing, with each of some libraries preloaded, beside one without.
//   started_children ROUNDS LIBRARY...     one line a library: its file's name, the median of microseconds more
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

double microsecondsOfChild(const std::string& preloaded) {
  std::string preload = "LD_PRELOAD=" + preloaded, on = "NCCL_FALCON=1";
  char* const with[] = {on.data(), preload.data(), nullptr};
  char* const without[] = {on.data(), nullptr};
  std::string program = "/bin/true";
  char* const arguments[] = {program.data(), nullptr};
  const auto begin = std::chrono::steady_clock::now();
  pid_t child = 0;
  int status = -1;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments, preloaded.empty() ? without : with) != 0 ||
      waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "%s with %s failed\n", program.c_str(), preload.c_str());
    std::exit(1);
  }
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 2 ? std::atoi(argv[1]) : 0;
  if (rounds < 1) return 2;
  std::vector<std::string> preloaded{""};
  preloaded.insert(preloaded.end(), argv + 2, argv + argc);
  std::vector<std::vector<double>> times(preloaded.size());
  for (int round = 0; round < rounds; ++round)
    for (std::size_t each = 0; each < preloaded.size(); ++each)
      times[each].push_back(microsecondsOfChild(preloaded[each]));
  const double without = median(times[0]);
  for (std::size_t each = 1; each < preloaded.size(); ++each)
    std::printf("%s %.0f\n", preloaded[each].substr(preloaded[each].rfind('/') + 1).c_str(),
                median(times[each]) - without);
}
