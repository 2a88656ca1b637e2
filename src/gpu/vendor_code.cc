#include "gpu/vendor_code.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>

namespace falcon::gpu {
namespace {

struct Search {
  std::uintptr_t address;
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
};

int visit(dl_phdr_info* object, std::size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    begin = std::min(begin, start);
    end = std::max(end, start + segment.p_memsz);
  }
  if (search.address < begin || search.address >= end) return 0;
  search.begin = begin;
  search.end = end;
  return 1;
}

constinit std::atomic<void*> vendorsHandle{nullptr};

}  // namespace

void CodeRange::setToObjectOf(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address)};
  if (dl_iterate_phdr(visit, &search) == 0) return;
  begin_.store(search.begin, std::memory_order_relaxed);
  size_.store(search.end - search.begin, std::memory_order_relaxed);
}

void tellCallsOf(const VendorLibrary& library) {
  void* none = nullptr;
  if (!library.handle || !vendorsHandle.compare_exchange_strong(none, library.handle)) return;
  ownCode.setToObjectOf(reinterpret_cast<const void*>(&visit));
  vendorsCode.setToObjectOf(reinterpret_cast<const void*>(library.functions.getVersion));
}

void* functionOfVendor(const char* name) {
  void* const library = vendorsHandle.load(std::memory_order_acquire);
  return library ? dlsym(library, name) : nullptr;
}

}  // namespace falcon::gpu
