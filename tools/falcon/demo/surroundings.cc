#include "demo/surroundings.h"

#include <vector>

#include "demo/child_process.h"

namespace falcon::demo {
namespace {

bool works(const std::string& programs, const std::string& folder, const std::vector<std::string>& option) {
  std::vector<std::string> command = {programs + "/falcon", "run", "-n", "2"};
  command.insert(command.end(), option.begin(), option.end());
  command.insert(command.end(), {"--", "/bin/true"});
  ChildProcess trial(command, {{"NCCL_FALCON", "0"}}, folder + "/trial.out", folder + "/trial.err");
  return trial.wait() == 0;
}

}  // namespace

bool mayUseNamespaces(const std::string& programs, const std::string& folder) {
  return works(programs, folder, {"--nodes", "2"});
}

bool mayUseCgroups(const std::string& programs, const std::string& folder) {
  return works(programs, folder, {"--cgroups"});
}

}  // namespace falcon::demo
