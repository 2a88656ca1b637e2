// What a profiler plugin is told by a group's run.
#include <algorithm>

#include "collectives/group_run.h"

namespace falcon::collectives {
namespace {

/// By NCCL's name where it has one. Null: as messages.
const char* profiledName(const Algorithm* algorithm) {
  if (!algorithm) return "MESSAGES";
  const std::uint8_t bit = algorithmBit(algorithm->name);
  if (bit == 1U << plugin::treeAlgorithm) return "TREE";
  if (bit == 1U << plugin::ringAlgorithm) return "RING";
  return algorithm->name;
}

}  // namespace

/// A profiler plugin learns what is launched: so many channels, each of which gets an event of its own later.
void GroupRun::tellLaunch(size_t index, std::span<const TaskPlan> plans, const Algorithm* algorithm) {
  if (!entries_[index].profiled.session) [[likely]]
    return;
  std::vector<int> channels;
  for (const TaskPlan& plan : plans)
    if (std::find(channels.begin(), channels.end(), plan.queue.channel) == channels.end())
      channels.push_back(plan.queue.channel);
  tellLaunch(index, ProfiledWay{static_cast<int>(channels.size()), profiledName(algorithm)});
}

void GroupRun::tellLaunch(size_t index, const ProfiledWay& way) {
  Entry& entry = entries_[index];
  if (!entry.profiled.session) [[likely]]
    return;
  Member& member = members_[entry.member];
  const auto number = member.local->callsTold[static_cast<std::size_t>(entry.call.operation)]++;
  member.launch.launch(entry.profiled, entry.call, number, way);
}

void GroupRun::closeLaunches() {
  for (Member& member : members_) member.launch.close();
}

/// The one that a task of this call on this channel shares with the others there.
std::shared_ptr<ProfiledChannel> GroupRun::channelOf(size_t index, int channel) {
  const ProfiledCall& profiled = entries_[index].profiled;
  if (!profiled.wants(plugin::bitsThatTell(plugin::kernelChannelEvent))) [[likely]]
    return nullptr;
  for (const Queue& queue : queues_)
    for (const Task& task : queue.tasks)
      if (task.entry == index && task.channel && task.channel->channel() == channel) return task.channel;
  return std::make_shared<ProfiledChannel>(profiled, channel);
}

}  // namespace falcon::collectives
