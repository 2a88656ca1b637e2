#include "gpu/vendor_code.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <string_view>

namespace falcon::gpu {
namespace {

/// An object that is loaded.
struct Object {
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  const char* name = "";  ///< for dlopen; "" is the program

  bool has(const void* address) const {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    return number >= begin && number < end;
  }
};

struct Search {
  const void* address;
  Object found{};
};

int visit(dl_phdr_info* info, std::size_t, void* context) {
  auto& search = *static_cast<Search*>(context);
  Object object;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    object.begin = std::min(object.begin, start);
    object.end = std::max(object.end, start + segment.p_memsz);
  }
  if (!object.has(search.address)) return 0;
  if (info->dlpi_name) object.name = info->dlpi_name;
  search.found = object;
  return 1;
}

/// Code that no object has, such as a compiler makes while the program runs, counts by pages.
Object objectAt(const void* address) {
  Search search{address};
  if (dl_iterate_phdr(visit, &search) != 0) return search.found;
  constexpr std::uintptr_t page = 4096;
  const auto begin = reinterpret_cast<std::uintptr_t>(address) / page * page;
  return {begin, begin + page};
}

constinit CodeRange ownCode;
constinit std::atomic<void*> drivenVendor{nullptr};

std::string_view nameIn(const link_map& library) {
  const char* strings = nullptr;
  std::size_t name = 0;
  for (const ElfW(Dyn)* entry = library.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_SONAME) name = entry->d_un.d_val;
  }
  return strings && name != 0 ? strings + name : "";
}

/// The library of NCCL that lies there itself, opened once more for good. What an object is only linked to lies
/// elsewhere. And one that has NCCL inside, with its names to be seen, is an application all the same: its own calls
/// come to us as well, and we cannot serve a half of them.
void* vendorIn(const Object& object) {
  void* const library = dlopen(*object.name ? object.name : nullptr, RTLD_LAZY | RTLD_NOLOAD);
  if (!library) return nullptr;
  link_map* map = nullptr;
  if (object.has(dlsym(library, "pncclGetVersion")) &&
      (library == drivenVendor.load(std::memory_order_acquire) ||
       (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && nameIn(*map).starts_with("libnccl.so"))))
    return library;
  dlclose(library);
  return nullptr;
}

struct Caller {
  CodeRange range;
  std::atomic<void*> vendor{nullptr};  ///< null: the application
};
constexpr std::size_t mostCallers = 32;  // beyond, each call is looked at again
constinit Caller callers[mostCallers];
constinit std::atomic<std::size_t> callersBegun{0};
constinit std::atomic_flag applicationIsKnown;

/// Two threads may keep the same one.
void keep(const Object& object, void* vendor) {
  if (!vendor && !applicationIsKnown.test_and_set()) applicationsCode.set(object.begin, object.end);
  if (callersBegun.load(std::memory_order_relaxed) >= mostCallers) return;
  const std::size_t place = callersBegun.fetch_add(1, std::memory_order_relaxed);
  if (place >= mostCallers) return;
  callers[place].vendor.store(vendor, std::memory_order_relaxed);
  callers[place].range.set(object.begin, object.end);
}

}  // namespace

void* askWhoCalls(const void* caller) {
  if (ownCode.has(caller)) return drivenVendor.load(std::memory_order_acquire);
  for (const Caller& known : callers)
    if (known.range.has(caller)) return known.vendor.load(std::memory_order_relaxed);
  const Object object = objectAt(caller);
  if (object.has(reinterpret_cast<const void*>(&visit))) return drivenVendor.load(std::memory_order_acquire);
  void* const vendor = vendorIn(object);
  keep(object, vendor);
  return vendor;
}

void tellCallsOf(const VendorLibrary& library) {
  void* none = nullptr;
  if (!library.handle || !drivenVendor.compare_exchange_strong(none, library.handle)) return;
  const Object own = objectAt(reinterpret_cast<const void*>(&visit));
  ownCode.set(own.begin, own.end);
}

void* FunctionByName::in(void* library) {
  void* const known = library_.load(std::memory_order_acquire);
  if (known == library) return function_.load(std::memory_order_relaxed);
  void* const function = dlsym(library, name_);
  if (!isKept_.test_and_set()) {
    function_.store(function, std::memory_order_relaxed);
    library_.store(library, std::memory_order_release);
  }
  return function;
}

}  // namespace falcon::gpu
