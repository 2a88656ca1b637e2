// Descriptions of events between the newest version and the others. What each newer version says more stands behind
// what the older ones say, in every member: so an older description is the beginning of the newest one.
#pragma once

#include <cstring>
#include <type_traits>

#include "plugin/profiler/profiler_v4.h"
#include "plugin/profiler/profiler_v7.h"

namespace falcon::plugin {

/// What a plugin of an older version, from 5 on, is told of an event.
template <class Older>
Older olderEvent(const Event& event) {
  static_assert(std::is_trivially_copyable_v<Older> && sizeof(Older) <= sizeof(Event));
  Older older;
  std::memcpy(&older, &event, sizeof older);
  return older;
}
/// Where a short description of an older version ends, in the room for its longest one, anything may lie.
inline void clearTags(Event& event) {
  switch (event.type) {
    case collectiveApiEvent:
      event.collectiveApi.tag = 0;
      break;
    case messageApiEvent:
      event.messageApi.tag = 0;
      break;
    case messageEvent:
      event.message.tag = 0;
      break;
    default:
      break;
  }
}

/// What an older NCCL has told, as the newest would; what it does not say is zero.
template <class Older>
Event newestEvent(const Older& older) {
  static_assert(std::is_trivially_copyable_v<Older> && sizeof(Older) <= sizeof(Event));
  Event event{};
  std::memcpy(&event, &older, sizeof older);
  if (!std::is_same_v<Older, Event>) clearTags(event);
  return event;
}

/// Version 4 has a short type, and a collective's or message's parent is its group: there is no call of the API.
template <>
inline EventV4 olderEvent(const Event& event) {
  EventV4 older;
  std::memcpy(&older, &event, sizeof older);
  older.type = static_cast<std::uint8_t>(event.type);
  if (event.type == collectiveEvent) older.parent = event.collective.group;
  if (event.type == messageEvent) older.parent = event.message.group;
  return older;
}
template <>
inline Event newestEvent(const EventV4& older) {
  Event event{};
  std::memcpy(&event, &older, sizeof older);
  event.type = older.type;
  if (event.type == collectiveEvent) event.collective.group = older.parent;
  if (event.type == messageEvent) event.message.group = older.parent;
  if (event.type == collectiveEvent || event.type == messageEvent) event.parent = nullptr;
  clearTags(event);
  return event;
}

}  // namespace falcon::plugin
