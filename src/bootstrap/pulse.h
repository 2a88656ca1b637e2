// Notices that a peer's host has fallen silent, whatever the connection that carries the messages is doing.
#pragma once

#include <functional>
#include <memory>

#include "base/owned.h"
#include "transport/reactor.h"

namespace falcon::bootstrap {

/// Watches an idle connection (Purpose::pulse). An orderly end or a reset says nothing: the messages' connection tells
/// of that in its own order, after the last message.
class Pulse {
 public:
  /// `silent` runs on the reactor's thread, at most once; it should not count on this object being there still.
  Pulse(std::shared_ptr<transport::Reactor> reactor, FileDescriptor socket, std::function<void()> silent);
  ~Pulse();

 private:
  const std::shared_ptr<transport::Reactor> reactor_;
  const FileDescriptor socket_;
};

}  // namespace falcon::bootstrap
