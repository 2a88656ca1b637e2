// A program without NCCL that opens plugins as Python opens extensions, lets each call, and shows what the library of
// each was told. In the end all have a communicator at a time.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "nccl.h"
#include "preload/vendor.h"

namespace {

struct Plugin {
  void* handle;
  ncclComm_t made, child;
};

template <class Function>
Function* find(const Plugin& plugin, const char* name) {
  return reinterpret_cast<Function*>(dlsym(plugin.handle, name));
}

void showLog(const Plugin& plugin) {
  std::string text(1 << 16, '\0');
  find<decltype(vendorTakeLog)>(plugin, "vendorTakeLog")(text.data(), text.size());
  std::fputs(text.c_str(), stdout);
}

/// Whether all went well.
bool callWithAllAtATime(std::vector<Plugin>& plugins) {
  using OfCommunicator = ncclResult_t(ncclComm_t);
  int failed = 0;
  for (Plugin& each : plugins) {
    each.made = find<ncclComm_t()>(each, "pluginMakes")();
    failed += find<ncclResult_t(ncclComm_t, ncclComm_t*)>(each, "pluginSplits")(each.made, &each.child) != ncclSuccess;
  }
  for (const Plugin& each : plugins)
    for (const ncclComm_t comm : {each.made, each.child})
      failed += find<OfCommunicator>(each, "pluginReduces")(comm) != ncclSuccess;
  for (const Plugin& each : plugins)
    for (const ncclComm_t comm : {each.child, each.made})
      failed += find<OfCommunicator>(each, "pluginEnds")(comm) != ncclSuccess;
  return failed == 0;
}

}  // namespace

int main(int count, char** paths) {
  std::vector<Plugin> plugins;
  for (int i = 1; i < count; ++i) {
    const Plugin plugin{dlopen(paths[i], RTLD_NOW | RTLD_LOCAL), nullptr, nullptr};
    if (!plugin.handle) return std::puts(dlerror()), 1;
    plugins.push_back(plugin);
    if (find<int(int)>(plugin, "pluginCalls")(2) != 0) return std::puts("a call failed"), 1;
    showLog(plugin);
  }
  if (!callWithAllAtATime(plugins)) return std::puts("a call failed"), 1;
  for (const Plugin& each : plugins) showLog(each);
  return 0;
}
