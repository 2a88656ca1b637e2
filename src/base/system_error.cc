#include "base/system_error.h"

#include <sys/resource.h>

#include <cerrno>
#include <system_error>

#include "base/format.h"

namespace falcon {

std::string reasonOf(int number) {
  const std::string text = std::generic_category().message(number);
  if (number == EMFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    return fmt::format("{} (this process may have {} file descriptors; raise that with ulimit -n)", text,
                       limit.rlim_cur);
  }
  if (number == ENFILE) return text + " (the whole machine has none left; raise it with sysctl fs.file-max)";
  return text;
}

bool lacksDescriptors(int number) {
  return number == EMFILE || number == ENFILE;
}

}  // namespace falcon
