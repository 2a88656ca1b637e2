// How the ranks of a communicator come to ask the same tuner plugin. Takes no round of messages of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/host_communicator.h"
#include "plugin/tuner/tuner_directory.h"

namespace falcon::collectives {

/// One rank's part, at the making of a communicator: exchange vote(), agree().
class TunerSetup {
 public:
  /// By NCCL_TUNER_PLUGIN. A rank alone has nothing to tune.
  TunerSetup(CommunicatorId communicator, const std::vector<MemberInfo>& members);

  /// Which plugin this rank has; "" without one. One line.
  std::string vote() const;
  /// Takes the votes off the lines, of which each is the last of its text. Null where not all have the same plugin: a
  /// rank that chooses otherwise than the others waits for ever. Says so, once.
  std::unique_ptr<const plugin::TunerSession> agree(std::vector<std::string>& texts);

 private:
  std::unique_ptr<plugin::TunerSession> session_;
};

}  // namespace falcon::collectives
