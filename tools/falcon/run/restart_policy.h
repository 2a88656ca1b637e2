// Whether a job that has ended is started again, and who then has whose place: decided without side effects.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace falcon::tools {

/// What the job asked for, as ncclFalconRestart leaves it (docs/restart.md).
struct RestartRequest {
  std::vector<Rank> leaveOut;
  std::string checkpoint;  ///< for people; "": there is none
};
/// Checked field by field. Errors (invalidArgument) say what is wrong.
Result<RestartRequest> parseRestartRequest(const std::string& json);

/// How an attempt ended.
struct AttemptEnd {
  int code = 0;
  bool asked = false;  ///< somebody asked `falcon run` to end
  std::optional<RestartRequest> request;
};

/// Places are numbered: those of the ranks as they started first, then the spares'.
class RestartPolicy {
 public:
  RestartPolicy(int ranks, int restarts, int spares);

  /// The place of each rank in the attempt that runs, or is to run.
  const std::vector<int>& places() const { return places_; }
  int restarted() const { return restarted_; }

  struct Next {
    bool again = false;
    std::string text;  ///< for people; "": nothing to say
  };
  /// A job that has failed is started again, `restarts` times at most, also where it died by itself. Who is to be left
  /// out gives its place to a spare that was never used, as long as there is one.
  Next after(const AttemptEnd& end);

 private:
  std::string replace(const std::vector<Rank>& leaveOut);

  const int ranks_, restarts_, spares_;
  int restarted_ = 0, used_ = 0;
  std::vector<int> places_;
};

}  // namespace falcon::tools
