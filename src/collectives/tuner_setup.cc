#include "collectives/tuner_setup.h"

#include "base/log.h"
#include "collectives/member_info.h"

namespace falcon::collectives {

TunerSetup::TunerSetup(CommunicatorId communicator, const std::vector<MemberInfo>& members) {
  if (members.size() > 1)
    session_ = plugin::processTuner().open({communicator, static_cast<int>(members.size()), countOfNodes(members)});
}

std::string TunerSetup::vote() const {
  if (!session_) return "";
  std::string name = fmt::format("{} (v{})", session_->calls().name(), session_->calls().version());
  for (char& letter : name)
    if (letter == '\n') letter = ' ';
  return name;
}

std::unique_ptr<const plugin::TunerSession> TunerSetup::agree(std::vector<std::string>& texts) {
  std::vector<std::string> votes;
  for (std::string& text : texts) {
    const auto line = text.find('\n');
    votes.push_back(line == std::string::npos ? "" : text.substr(line + 1));
    text.resize(std::min(line, text.size()));
  }
  for (std::size_t rank = 1; rank < votes.size(); ++rank) {
    if (votes[rank] == votes[0]) continue;
    const auto shown = [](const std::string& vote) { return vote.empty() ? "none" : vote; };
    log::notice(
        "no tuner plugin is asked: rank 0 has {}, rank {} has {}. Set NCCL_TUNER_PLUGIN alike, and install the plugin "
        "on every host",
        shown(votes[0]), rank, shown(votes[rank]));
    session_.reset();
    break;
  }
  return std::move(session_);
}

}  // namespace falcon::collectives
