#include "run/output_relay.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace falcon::tools {

Result<FileDescriptor> OutputRelay::addStream(int output, std::string prefix) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::system("cannot make a pipe: {}", std::strerror(errno));
  streams_.push_back({FileDescriptor(ends[0]), output, PrefixedLines(std::move(prefix))});
  return FileDescriptor(ends[1]);
}

void OutputRelay::start() {
  thread_ = std::thread([this] { relayAll(); });
}

void OutputRelay::finish() {
  if (thread_.joinable()) thread_.join();
}

void OutputRelay::relayAll() {
  for (;;) {
    std::vector<pollfd> watched;
    for (const auto& stream : streams_)
      watched.push_back({stream.source.get(), POLLIN, 0});  // closed ones are -1: skipped
    bool open = false;
    for (const auto& one : watched) open = open || one.fd >= 0;
    if (!open) return;
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    for (size_t at = 0; at < watched.size(); ++at)
      if (watched[at].revents != 0) relayOnce(streams_[at]);
  }
}

void OutputRelay::relayOnce(Stream& stream) {
  if (!stream.source) return;
  std::array<char, 65'536> buffer;
  const ssize_t count = ::read(stream.source.get(), buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return;
  if (count > 0) {
    write(stream.output, stream.lines.add({buffer.data(), static_cast<size_t>(count)}));
    return;
  }
  stream.source.reset();
  write(stream.output, stream.lines.finish());
}

void OutputRelay::write(int output, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(output, text.data() + done, text.size() - done);
    if (count >= 0) {
      done += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      pollfd room{output, POLLOUT, 0};
      ::poll(&room, 1, -1);
    } else if (errno == EPIPE) {
      return readerIsGone(output);
    } else if (errno != EINTR) {
      return lose(output, errno);
    }
  }
}

// `| head`: the ranks learn it as they would without us, from their next write.
void OutputRelay::readerIsGone(int output) {
  for (auto& stream : streams_)
    if (stream.output == output) stream.source.reset();
}

// The job goes on, and what it prints later is tried again: a disk may have room by then.
void OutputRelay::lose(int output, int error) {
  if (lostOutput_) return;
  lostOutput_ = true;
  const std::string line = fmt::format("falcon run: {} cannot be written: {}; output of the ranks is lost\n",
                                       output == STDOUT_FILENO ? "stdout" : "stderr", std::strerror(error));
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace falcon::tools
