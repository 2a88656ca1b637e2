#include "transport/descriptor_limit.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/contained.h"
#include "base/folder_names.h"
#include "base/library_thread.h"
#include "base/log.h"
#include "base/system_error.h"

namespace falcon::transport {
namespace {

constexpr const char* remedy =
    "raise the limit of open files (ulimit -n, LimitNOFILE= of a service, --ulimit nofile= of a container)";

std::size_t openDescriptors() {
  const auto all = namesIn("/proc/self/fd");
  return all ? all->size() : 0;
}

/// The lowest number that is free, which new descriptors take; the limit where none is.
rlim_t lowestFree(rlim_t limit) {
  const int number = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (number < 0) return limit;  // or no standard stream to try it with: it is counted
  ::close(number);
  return static_cast<rlim_t>(number);
}

/// No standard stream, which a new descriptor never takes the place of (newDescriptor()); and no socket, as long as
/// there is another: closeInForkedChildren() knows those by number. -1: none is open.
int dispensable() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return -1;
  int socket = -1;
  for (int number = STDERR_FILENO + 1; static_cast<rlim_t>(number) < limit.rlim_cur; ++number) {
    struct stat info;
    if (fstat(number, &info) != 0) continue;
    if (!S_ISSOCK(info.st_mode)) return number;
    socket = number;
  }
  return socket;
}

}  // namespace

Status reserveDescriptors(std::size_t more, const std::string& what) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  // Far from the limit nobody needs to count.
  if (more < limit.rlim_cur / 4 && lowestFree(limit.rlim_cur) < limit.rlim_cur / 2) return {};
  const std::size_t open = openDescriptors();
  const rlim_t needed = open + more;
  if (needed <= limit.rlim_cur) return {};
  if (needed > limit.rlim_max)
    return log::decided(
        Error::system("{} needs {} file descriptors beside the {} that are open, and this process may have {}: {}",
                      what, more, open, limit.rlim_max, remedy));
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    return log::decided(Error::system("{} needs {} file descriptors, and the limit cannot be raised: {}", what, needed,
                                      reasonOf(errno)));
  log::info("{} needs many connections: the soft limit of open files goes from {} to {}", what, before, needed);
  return {};
}

DescriptorLimitLifted::DescriptorLimitLifted() {
  if (getrlimit(RLIMIT_NOFILE, &before_) != 0 || before_.rlim_cur == before_.rlim_max) return;
  const rlimit lifted{before_.rlim_max, before_.rlim_max};
  isLifted_ = setrlimit(RLIMIT_NOFILE, &lifted) == 0;
}

DescriptorLimitLifted::~DescriptorLimitLifted() {
  if (isLifted_) setrlimit(RLIMIT_NOFILE, &before_);
}

void withDescriptorsOfItsOwn(int free, const std::function<void()>& work) {
  const auto say = [](const char* problem) { log::info("no last word could be sent: {}", problem); };
  const auto lastWord = [&] {
    if (unshare(CLONE_FILES) != 0) return;
    for (int i = 0; i < free; ++i) ::close(dispensable());  // the process's stay open
    contained(work, say);
  };
  contained([&] { libraryThread("nccl-falcon-bye", lastWord).join(); }, say);
}

}  // namespace falcon::transport
