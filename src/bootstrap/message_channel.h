// Whole messages over one socket, sent from any thread, received on the reactor's.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "base/owned.h"
#include "transport/reactor.h"

namespace falcon::bootstrap {

/// Thread-safe. Handlers run on the reactor's thread; they should not own the channel (a cycle would keep it open).
class MessageChannel : public std::enable_shared_from_this<MessageChannel> {
 public:
  using MessageHandler = std::function<void(std::string_view message)>;
  /// Once, when the other side closed or broke the rules: why, fit to follow "died: ".
  using CloseHandler = std::function<void(const std::string& why)>;

  static constexpr std::size_t maximumMessage = 64 << 20;

  /// A message that would make more than `queueLimit` bytes wait is not sent.
  MessageChannel(std::shared_ptr<transport::Reactor> reactor, FileDescriptor socket,
                 std::size_t queueLimit = 2 * maximumMessage);
  ~MessageChannel();

  void start(MessageHandler message, CloseHandler closed);

  /// A message as it goes over the wire. Many channels can send the same one without a copy each.
  using Framed = std::shared_ptr<const std::string>;
  static Framed frame(std::string_view message);

  /// The only message over a socket that nothing else goes over, sent as far as that is possible at once.
  static void sendOnly(const FileDescriptor& socket, std::string_view message);

  /// Never blocks. False: not sent, because closed, too long or too much waits already.
  bool send(std::string_view message) { return send(frame(message)); }
  bool send(Framed framed);
  /// Nothing more will be sent: tells the other side so once all is out. Receiving goes on.
  void finish();
  /// Closes at once. After it returns no handler is running or will run (unless called from one).
  void close();

 private:
  void watch();
  void onEvents();
  bool receive(std::string& why);
  bool deliver(std::string& why);
  void flush();

  const std::shared_ptr<transport::Reactor> reactor_;
  const std::size_t queueLimit_;
  MessageHandler message_;
  CloseHandler closedHandler_;
  std::string input_;  // reactor's thread only

  std::mutex mutex_;
  std::condition_variable handlersLeft_;
  std::thread::id inside_{};  // of handlers, while any runs
  FileDescriptor socket_;
  std::deque<Framed> output_;
  std::size_t waiting_ = 0;  // bytes of output_ that are not sent
  std::size_t sent_ = 0;     // of the first of output_
  bool watchingOutput_ = false;
  bool finishing_ = false;
  bool broken_ = false;  // sending failed; receiving will find out why
  bool closed_ = false;
};

}  // namespace falcon::bootstrap
