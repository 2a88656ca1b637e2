#include "collectives/step_run.h"

namespace falcon::collectives {

void StepRun::begin(transport::Ports& ports, const MemberShape& shape, const Call& call, const Way& way,
                    std::span<const Rank> ring) {
  used_ = 0;
  for (int channel = 0; channel < way.channels; ++channel) {
    const auto plan = planChannel(shape, call, way, channel, ring);
    if (!plan) continue;
    if (used_ < channels_.size()) {
      channels_[used_].runner.restart(ports, plan->rounds, plan->operands);
      channels_[used_].finished = false;
    } else {
      channels_.push_back({StepRunner(ports, plan->rounds, plan->operands)});
    }
    ++used_;
  }
  running_ = used_;
}

bool StepRun::again(const Call& call) {
  for (Channel& channel : std::span(channels_).first(used_)) {
    if (!channel.runner.again(call.send, call.receive)) return false;
    channel.finished = false;
  }
  running_ = used_;
  return true;
}

Result<bool> StepRun::progress() {
  bool moved = false;
  for (Channel& channel : std::span(channels_).first(used_)) {
    if (channel.finished) continue;
    const auto state = channel.runner.progress();
    if (!state) return state.error();
    moved |= *state != StepRunner::State::stuck;
    if (*state != StepRunner::State::finished) continue;
    channel.finished = true;
    if (--running_ == 0) makeRoomForWaits();
  }
  return moved;
}

void StepRun::makeRoomForWaits() {
  std::size_t most = 0;
  for (const Channel& channel : std::span(channels_).first(used_)) most += channel.runner.mostWaitSources();
  sources_.reserve(most);
}

std::span<const transport::WaitSource> StepRun::waitSources() {
  sources_.clear();
  for (const Channel& channel : std::span(channels_).first(used_))
    if (!channel.finished) channel.runner.appendWaitSources(sources_);
  return sources_;
}

}  // namespace falcon::collectives
