#include "base/folder_names.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/system_error.h"

namespace falcon {

Result<std::vector<std::string>> namesIn(const std::string& folder) {
  const auto close = [](DIR* opened) { ::closedir(opened); };
  const std::unique_ptr<DIR, decltype(close)> opened(::opendir(folder.c_str()), close);
  if (!opened) return Error::system("the folder {} cannot be read: {}", folder, reasonOf(errno));
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(opened.get());
    if (!entry && errno != 0) return Error::system("the folder {} cannot be read: {}", folder, reasonOf(errno));
    if (!entry) return names;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
}

}  // namespace falcon
