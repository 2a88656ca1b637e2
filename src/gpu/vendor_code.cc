#include "gpu/vendor_code.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/applications_callback.h"

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

/// A place in the program that calls us.
struct Site {
  std::atomic<const void*> caller{nullptr};
  void* vendor = nullptr;  ///< null: the application; written before the caller
};
constexpr unsigned siteBits = 12, mostSteps = 32;
constinit Site sites[1 << siteBits];
constinit const void* const beingWritten = &sites;
constinit std::atomic_flag applicationIsKnown;

Site& siteAt(const void* caller, unsigned step) {
  const std::uint64_t scattered = reinterpret_cast<std::uintptr_t>(caller) * 0x9e3779b97f4a7c15U;
  return sites[((scattered >> (64 - siteBits)) + step) % std::size(sites)];
}

const Site* findSite(const void* caller) {
  for (unsigned step = 0; step < mostSteps; ++step) {
    const Site& site = siteAt(caller, step);
    const void* const known = site.caller.load(std::memory_order_acquire);
    if (known == caller) return &site;
    if (!known) return nullptr;
  }
  return nullptr;
}

/// False: there is no room, so that this place is looked at each time. Two threads may keep the same one.
bool keepSite(const void* caller, void* vendor) {
  for (unsigned step = 0; step < mostSteps; ++step) {
    Site& site = siteAt(caller, step);
    const void* none = nullptr;
    if (!site.caller.compare_exchange_strong(none, beingWritten, std::memory_order_relaxed)) continue;
    site.vendor = vendor;
    site.caller.store(caller, std::memory_order_release);
    return true;
  }
  return false;
}

}  // namespace

void* askWhoCalls(const void* caller) {
  if (isWhereCallbacksAreCalled(caller)) return nullptr;
  if (ownCode.has(caller)) return drivenVendor.load(std::memory_order_acquire);
  if (const Site* const known = findSite(caller)) return known->vendor;
  const Object object = objectAt(caller);
  if (object.has(reinterpret_cast<const void*>(&visit))) return drivenVendor.load(std::memory_order_acquire);
  void* const vendor = vendorIn(object);
  if (!vendor && !applicationIsKnown.test_and_set()) applicationsCode.set(object.begin, object.end);
  if (!keepSite(caller, vendor) && vendor) dlclose(vendor);  // whoever opened it keeps it
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
