// libgcc's unwinder, linked in statically, asks glibc 2.35's _dl_find_object for an address's unwind tables. The
// library must run from glibc 2.34 on, so it answers that question itself, with what every glibc has.
#include <dlfcn.h>
#include <link.h>

#include <cstdint>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
namespace {

struct Search {
  std::uintptr_t address;
  dl_find_object* found;
};

int visit(dl_phdr_info* object, size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  bool hit = false;
  std::uintptr_t low = UINTPTR_MAX, high = 0;
  void* tables = nullptr;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    const std::uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) {
      low = start < low ? start : low;
      high = start + segment.p_memsz > high ? start + segment.p_memsz : high;
      hit = hit || (search.address >= start && search.address < start + segment.p_memsz);
    } else if (segment.p_type == PT_GNU_EH_FRAME) {
      tables = reinterpret_cast<void*>(start);
    }
  }
  if (!hit || !tables) return 0;
  *search.found = {};
  search.found->dlfo_map_start = reinterpret_cast<void*>(low);
  search.found->dlfo_map_end = reinterpret_cast<void*>(high);
  search.found->dlfo_eh_frame = tables;
  return 1;
}

}  // namespace

extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* address, dl_find_object* result) noexcept {
  Search search{reinterpret_cast<std::uintptr_t>(address), result};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}
#endif
