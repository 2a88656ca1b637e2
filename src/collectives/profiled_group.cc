#include "collectives/profiled_group.h"

#include <algorithm>

#include "base/clock.h"
#include "plugin/profiler/event_names.h"

namespace falcon::collectives {
namespace {

using plugin::Event;
using plugin::EventState;

std::uint64_t now() {
  return static_cast<std::uint64_t>(SystemClock::instance().now().count());
}

}  // namespace

void ProfiledApi::begin(const plugin::ProfilerSession& session) {
  session_ = &session;
  Event event{.type = plugin::groupApiEvent};
  event.groupApi = {.graphCaptured = false, .depth = submissions_.size() > 1 ? 2 : 1};
  if (session.mask() & plugin::bitsThatTell(plugin::groupApiEvent)) event_ = session.start(event);
  session.state(event_, EventState::groupStartApiStop);
}

ProfiledCall ProfiledApi::add(std::size_t index, const plugin::ProfilerSession* session) {
  if (!session) return {};
  ProfiledCall profiled{session, session->mask(), submissions_[index].tag};
  if (!profiled.mask) return profiled;  // it is counted all the same
  if (!session_) begin(*session);
  const Submission& submission = submissions_[index];
  const Call& call = submission.call;
  const bool message = isPointToPoint(call.operation);
  Event event{.type = message ? plugin::messageApiEvent : plugin::collectiveApiEvent, .parent = event_};
  if (message)
    event.messageApi = {.function = nameOf(call.operation),
                        .count = call.count,
                        .type = plugin::profilerNameOf(call.type),
                        .stream = submission.stream,
                        .graphCaptured = false,
                        .tag = submission.tag};
  else
    event.collectiveApi = {.function = nameOf(call.operation),
                           .count = call.count,
                           .type = plugin::profilerNameOf(call.type),
                           .root = std::max(call.peer, 0),
                           .stream = submission.stream,
                           .graphCaptured = false,
                           .tag = submission.tag};
  if (profiled.wants(plugin::bitsThatTell(event.type))) profiled.event = session->start(event);
  session->stop(profiled.event);
  return profiled;
}

void ProfiledApi::launch() {
  if (session_) session_->state(event_, EventState::groupEndApiStart);
}

ProfiledApi::~ProfiledApi() {
  if (session_) session_->stop(event_);
}

void ProfiledLaunch::launch(ProfiledCall& profiled, const Call& call, std::uint64_t number, const ProfiledWay& way) {
  if (!profiled.session) return;
  if (!session_) {
    session_ = profiled.session;
    const Event group{.type = plugin::groupEvent};
    if (profiled.wants(plugin::bitsThatTell(plugin::groupEvent))) event_ = session_->start(group);
  }
  const bool message = isPointToPoint(call.operation);
  Event event{.type = message ? plugin::messageEvent : plugin::collectiveEvent,
              .parent = profiled.event,
              .rank = profiled.session->rank()};
  const auto channels = static_cast<std::uint8_t>(way.channels);
  if (message)
    event.message = {.function = nameOf(call.operation),
                     .buffer = call.operation == Operation::send ? const_cast<void*>(call.send) : call.receive,
                     .type = plugin::profilerNameOf(call.type),
                     .count = call.count,
                     .peer = call.peer,
                     .channels = channels,
                     .group = event_,
                     .tag = profiled.tag};
  else
    event.collective = {.number = number,
                        .function = nameOf(call.operation),
                        .send = call.send,
                        .receive = call.receive,
                        .count = call.count,
                        .root = std::max(call.peer, 0),
                        .type = plugin::profilerNameOf(call.type),
                        .channels = channels,
                        .warps = 1,
                        .algorithm = way.algorithm,
                        .protocol = "SIMPLE",
                        .group = event_,
                        .kernelVariant = nullptr,
                        .symmetric = false,
                        .tag = profiled.tag};
  profiled.event = nullptr;
  if (!profiled.wants(plugin::bitsThatTell(event.type))) return;
  profiled.event = profiled.session->start(event);
  if (profiled.event) calls_.push_back(profiled.event);
}

void ProfiledLaunch::close() {
  if (!session_) return;
  for (void* call : calls_) session_->stop(call);
  calls_.clear();
  session_->stop(std::exchange(event_, nullptr));
  session_ = nullptr;
}

void ProfiledChannel::begin() {
  if (begun_) return;
  begun_ = true;
  Event event{.type = plugin::kernelChannelEvent, .parent = call_.event, .rank = call_.session->rank()};
  event.kernelChannel = {static_cast<std::uint8_t>(channel_), now()};
  if (call_.wants(plugin::bitsThatTell(event.type))) event_ = call_.session->start(event);
}

ProfiledChannel::~ProfiledChannel() {
  if (!event_) return;
  plugin::StateArguments arguments{};
  arguments.kernelChannel.timer = now();
  call_.session->state(event_, EventState::kernelChannelStop, arguments);
  call_.session->stop(event_);
}

}  // namespace falcon::collectives
