#include "transport/fork_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>

namespace falcon::transport {
namespace {

struct GuardRegistry {
  std::mutex mutex;
  // By number. Numbers are used again, for anything; the inode tells whether it is still the same socket.
  std::map<int, ino_t> sockets;
};

bool sameSocket(int number, ino_t inode) {
  struct stat info;
  return fstat(number, &info) == 0 && S_ISSOCK(info.st_mode) && info.st_ino == inode;
}

// Never destroyed: the fork handlers may run at any time.
GuardRegistry& guardRegistry() {
  static GuardRegistry* one = [] {
    // First: where there is no memory for it nothing is registered, or it were twice.
    auto* const made = new GuardRegistry;
    pthread_atfork([] { guardRegistry().mutex.lock(); }, [] { guardRegistry().mutex.unlock(); },
                   [] {
                     // Only async-signal-safe calls here. The numbers stay taken, so that nobody closes a stranger's.
                     const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
                     for (const auto& [number, inode] : guardRegistry().sockets)
                       if (nothing >= 0 && sameSocket(number, inode)) dup3(nothing, number, O_CLOEXEC);
                     if (nothing >= 0) ::close(nothing);
                     guardRegistry().mutex.unlock();
                   });
    return made;
  }();
  return *one;
}

}  // namespace

void closeInForkedChildren(int socket) {
  struct stat info;
  if (fstat(socket, &info) != 0) return;
  GuardRegistry& all = guardRegistry();
  const std::lock_guard lock(all.mutex);
  all.sockets[socket] = info.st_ino;  // whatever had the number before is closed
}

}  // namespace falcon::transport
