#include "base/own_files.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace falcon {

std::string ownFile() {
  Dl_info self{};
  link_map* map = nullptr;
  const auto* const here = reinterpret_cast<const void*>(&ownFile);
  if (dladdr1(here, &self, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map) return "";
  // The program itself: the loader knows it by the name that it was called by, which may be none with a folder.
  std::error_code ignored;
  if (!*map->l_name) return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
  // As it was when this was loaded by a relative path: the working folder may be another by now.
  char folder[8192];  // twice what a path may have
  if (dlinfo(map, RTLD_DI_ORIGIN, folder) != 0) return "";
  return (folder / std::filesystem::path(map->l_name).filename()).string();
}

std::string ownFolder() {
  return std::filesystem::path(ownFile()).parent_path().string();
}

std::optional<std::string> ownLibrary(const std::string& fileName) {
  const std::string folder = ownFolder();
  for (const char* place : {"/", "/" FALCON_LIBRARIES_FROM_PROGRAMS "/", "/../lib/"}) {
    const std::string path = std::filesystem::path(folder + place + fileName).lexically_normal();
    if (access(path.c_str(), R_OK) == 0) return path;
  }
  return std::nullopt;
}

}  // namespace falcon
