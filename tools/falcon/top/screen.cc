#include "top/screen.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace falcon::top {
namespace {

void write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(STDOUT_FILENO, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
}

}  // namespace

Screen::Screen() {
  sigemptyset(&ending_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&ending_, signal);
  sigprocmask(SIG_BLOCK, &ending_, &before_);
  write("\x1b[?1049h\x1b[?25l");  // the second screen, without a cursor
}

Screen::~Screen() {
  write("\x1b[?25h\x1b[?1049l");
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void Screen::show(const std::string& text) {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) size = {24, 80, 0, 0};
  std::string drawn = "\x1b[H";
  std::string_view rest = text;
  for (int row = 0; row + 1 < size.ws_row && !rest.empty(); ++row) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    drawn += rest.substr(0, std::min<std::size_t>(end, size.ws_col));
    drawn += "\x1b[K\r\n";
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  write(drawn + "\x1b[J");
}

bool Screen::pause(Nanoseconds duration) {
  const timespec limit{duration.count() / 1'000'000'000, duration.count() % 1'000'000'000};
  return sigtimedwait(&ending_, nullptr, &limit) < 0;
}

}  // namespace falcon::top
