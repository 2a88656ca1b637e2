#include "machine/net_namespace.h"

#include <fcntl.h>
#include <sched.h>

#include <cerrno>
#include <cstring>

namespace falcon::tools {
namespace {

constexpr const char* ownNamespace = "/proc/self/ns/net";

}  // namespace

Result<FileDescriptor> makeNetNamespace() {
  auto before = openNetNamespace(ownNamespace);
  if (!before) return before.error();
  if (::unshare(CLONE_NEWNET) != 0)
    return Error::system("cannot make a network namespace: {}; run as root (CAP_SYS_ADMIN), or leave out --nodes",
                         std::strerror(errno));
  auto made = openNetNamespace(ownNamespace);
  if (::setns(before->get(), CLONE_NEWNET) != 0)
    return Error::system("cannot go back to the network namespace of before: {}", std::strerror(errno));
  return made;
}

Result<FileDescriptor> openNetNamespace(const std::string& path) {
  FileDescriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) return Error::system("cannot open the network namespace {}: {}", path, std::strerror(errno));
  return descriptor;
}

std::string pathOfNetNamespace(int owner, int descriptor) {
  return fmt::format("/proc/{}/fd/{}", owner, descriptor);
}

}  // namespace falcon::tools
