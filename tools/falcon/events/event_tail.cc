#include "events/event_tail.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>
#include <utility>

#include "report/json_lines.h"

namespace falcon::events {
namespace {

bool same(const FileDescriptor& one, const FileDescriptor& other) {
  struct stat first {
  }, second{};
  return fstat(one.get(), &first) == 0 && fstat(other.get(), &second) == 0 && first.st_ino == second.st_ino &&
         first.st_dev == second.st_dev;
}

/// The files that are there now, oldest first. Opened from the newest on: one that is rotated meanwhile is met twice,
/// as itself and one older, and none is passed over.
std::vector<FileDescriptor> openAll(const std::string& path) {
  std::vector<FileDescriptor> files;
  for (int age = 0; age <= report::eventFilesKept; ++age) {
    const std::string name = age == 0 ? path : report::rotatedName(path, age);
    FileDescriptor file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat facts {};
    if (!file || fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) continue;
    if (files.empty() || !same(files.front(), file)) files.insert(files.begin(), std::move(file));
  }
  return files;
}

}  // namespace

EventTail::EventTail(std::string path, bool fromStart, std::string job) : path_(std::move(path)), job_(std::move(job)) {
  if (fromStart) return;
  auto files = openAll(path_);
  if (files.empty()) return;
  file_ = std::move(files.back());
  ::lseek(file_.get(), 0, SEEK_END);
}

void EventTail::read(const FileDescriptor& file) {
  char buffer[1 << 14];
  for (ssize_t got; (got = ::read(file.get(), buffer, sizeof buffer)) > 0;)
    rest_.append(buffer, static_cast<size_t>(got));
  std::size_t start = 0;
  for (std::size_t end; (end = rest_.find('\n', start)) != std::string::npos; start = end + 1)
    if (end > start && report::isOfJob(std::string_view(rest_).substr(start, end - start), job_))
      lines_.push_back(rest_.substr(start, end - start));
  rest_.erase(0, start);
}

std::vector<std::string> EventTail::take() {
  // Which files there are is asked before the old one is read to its end: whoever writes then writes into one of these.
  std::vector<FileDescriptor> files = openAll(path_);
  std::size_t next = 0;
  if (file_) {
    read(file_);
    for (std::size_t i = 0; i < files.size(); ++i)
      if (same(file_, files[i])) next = i + 1;
  }
  for (; next < files.size(); ++next) {
    rest_.clear();
    file_ = std::move(files[next]);
    read(file_);
  }
  return std::exchange(lines_, {});
}

std::vector<std::string> allEvents(const std::string& path, const std::string& job) {
  return EventTail(path, true, job).take();
}

}  // namespace falcon::events
