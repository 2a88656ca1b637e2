#include "gpu/vendor_candidates.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/input_file.h"
#include "base/own_files.h"
#include "gpu/loader_cache.h"

namespace falcon::gpu {
namespace {

constexpr const char* fileName = "libnccl.so.2";

bool isFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

/// The paths of all objects in this process, but for the program.
std::vector<std::string> loadedObjects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* context) {
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string>*>(context)->push_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

constexpr std::string_view systemFolders =
    "/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:/usr/local/lib:/usr/local/nccl/lib:"
    "/opt/nccl/lib";

std::vector<std::string> foldersIn(std::string_view list) {
  std::vector<std::string> folders;
  while (!list.empty()) {
    const auto end = std::min(list.find(':'), list.size());
    folders.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return folders;
}

/// Where the loader looks for any object: LD_LIBRARY_PATH and its own folders.
bool isAnybodys(const std::string& folder) {
  const auto isIn = [&](const std::vector<std::string>& folders) {
    return std::find(folders.begin(), folders.end(), folder) != folders.end();
  };
  const char* const set = std::getenv("LD_LIBRARY_PATH");
  return isIn(foldersIn(systemFolders)) || folder.starts_with("/lib/") || folder == "/lib" || folder == "/lib64" ||
         (set && isIn(foldersIn(set)));
}

/// Where an object that is loaded looks for its libraries: its RPATH and RUNPATH, LD_LIBRARY_PATH, the system's, in the
/// loader's order.
std::vector<std::string> searchedBy(const std::string& object) {
  std::vector<std::string> folders;
  void* const handle = dlopen(object.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (!handle) return folders;
  Dl_serinfo size{};
  if (dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<char> memory(size.dls_size);
    auto* const info = reinterpret_cast<Dl_serinfo*>(memory.data());
    *info = size;
    if (dlinfo(handle, RTLD_DI_SERINFO, info) == 0)
      for (unsigned i = 0; i < info->dls_cnt; ++i) folders.emplace_back(info->dls_serpath[i].dls_name);
  }
  dlclose(handle);
  return folders;
}

class Candidates {
 public:
  void add(const std::string& path, const char* reason) {
    if (path.empty() || path[0] != '/' || !isFile(path)) return;
    const auto same = [&](const Candidate& known) { return known.path == path; };
    if (std::none_of(found_.begin(), found_.end(), same)) found_.push_back({path, reason});
  }
  void addFolders(std::string_view list, const char* reason) {
    for (const std::string& folder : foldersIn(list)) add(folder + "/" + fileName, reason);
  }
  /// Only of an object that has a folder of its own with NCCL in it. Of others the loader finds the system's, which
  /// they never get where their package opens another one first, by its path.
  void addSearchedBy(const std::string& object) {
    const std::vector<std::string> folders = searchedBy(object);
    const auto isOwn = [](const std::string& each) { return isFile(each + "/" + fileName) && !isAnybodys(each); };
    if (std::none_of(folders.begin(), folders.end(), isOwn)) return;
    for (const std::string& folder : folders) add(folder + "/" + fileName, "where a package looks");
  }
  std::vector<Candidate> take() { return std::move(found_); }

 private:
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<std::string> packageFoldersOf(const std::vector<std::string>& files) {
  std::vector<std::string> folders;
  for (const std::string& file : files)
    for (const std::string_view name : {"/site-packages/", "/dist-packages/"}) {
      const auto at = file.find(name);
      if (at == std::string::npos) continue;
      std::string folder = file.substr(0, at + name.size() - 1);
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(std::move(folder));
    }
  return folders;
}

std::vector<Candidate> vendorCandidates() {
  Candidates candidates;
  const std::vector<std::string> objects = loadedObjects();
  for (const std::string& object : objects)
    if (object.substr(object.find_last_of('/') + 1).starts_with("libnccl.so")) candidates.add(object, "loaded already");

  if (const std::string own = ownFolder(); !own.empty())
    candidates.add(own + "/libnccl-vendor.so.2", "beside this library");

  const std::vector<std::string> packages = packageFoldersOf(objects);
  for (const std::string& object : objects)
    if (!packageFoldersOf({object}).empty()) candidates.addSearchedBy(object);
  for (const std::string& folder : packages)
    candidates.add(folder + "/nvidia/nccl/lib/" + fileName, "a Python package");

  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* root = std::getenv(name)) candidates.addFolders(std::string(root) + "/lib64", "the CUDA toolkit");
  candidates.addFolders("/usr/local/cuda/lib64", "the CUDA toolkit");
  if (const char* folders = std::getenv("LD_LIBRARY_PATH")) candidates.addFolders(folders, "LD_LIBRARY_PATH");
  constexpr std::size_t mostBytes = 64 << 20;
  if (const auto cache = readInputFile(loaderCacheFile, mostBytes))
    for (const std::string& path : pathsInLoaderCache(*cache, fileName)) candidates.add(path, "the loader's cache");
  candidates.addFolders(systemFolders, "the system's folders");
  return candidates.take();
}

}  // namespace falcon::gpu
