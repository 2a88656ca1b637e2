// A program without NCCL that opens plugins as Python opens extensions, lets each call, and shows what the library of
// each was told.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "preload/vendor.h"

int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    void* const plugin = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
    if (!plugin) return std::puts(dlerror()), 1;
    if (reinterpret_cast<int (*)(int)>(dlsym(plugin, "pluginCalls"))(2) != 0) return std::puts("a call failed"), 1;
    std::string text(1 << 16, '\0');
    reinterpret_cast<decltype(&vendorTakeLog)>(dlsym(plugin, "vendorTakeLog"))(text.data(), text.size());
    std::fputs(text.c_str(), stdout);
  }
  return 0;
}
