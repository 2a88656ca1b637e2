#include "reshape/restart_request.h"

#include "base/escaped.h"
#include "base/format.h"
#include "base/whole_file.h"

namespace falcon::reshape {

std::string toJson(const RestartRequest& request) {
  std::string leaveOut;
  for (const LeftOutRank& each : request.leaveOut)
    leaveOut += fmt::format(R"({}{{"rank":{},"host":{},"device":{}}})", leaveOut.empty() ? "" : ",", each.rank,
                            jsonString(each.host), each.device);
  std::string checkpoint = "null";
  if (request.iteration)
    checkpoint =
        fmt::format(R"({{"folder":{},"iteration":{}}})", jsonString(request.checkpointFolder), *request.iteration);
  return fmt::format(R"({{"v":1,"job":{},"leave_out":[{}],"checkpoint":{}}})", jsonString(request.job), leaveOut,
                     checkpoint);
}

Status writeRestartRequest(const std::string& path, const RestartRequest& request) {
  return writeWhole(path, toJson(request) + "\n");
}

}  // namespace falcon::reshape
