#include "front/route.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

#include <type_traits>

#include "base/applications_callback.h"
#include "front/claim.h"
#include "front/core.h"
#include "front/loader.h"
#include "front/message.h"

namespace falcon::front {
namespace {

/// A library that has NCCL's functions.
struct Vendor {
  VendorTable table;
  const void* base;     ///< where it is loaded
  bool isFalconItself;  ///< our libnccl.so.2, of this version or another, which watches by itself
  ExtensionTable own;   ///< of that
  Route home;
};

constexpr const char* telltale = "pncclGetVersion";

/// The object at an address: its name for dlopen, and where it is loaded.
bool objectAt(const void* address, const char*& name, const void*& base) {
  Dl_info info;
  link_map* map = nullptr;
  if (loader().objectAt(address, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 || !map) return false;
  name = map->l_name;
  base = reinterpret_cast<const void*>(map->l_addr);
  return true;
}

/// What is loaded already, whatever its name; null where it cannot be had. "" is the program.
void* opened(const char* name) {
  return loader().open(name && *name ? name : nullptr, RTLD_LAZY | RTLD_NOLOAD);
}

void* findLoaded(const char* name) {
  void* const object = opened(name);
  if (!object) return nullptr;
  void* const found = loader().symbol(object, telltale);
  loader().close(object);  // whoever loaded it keeps it
  return found;
}

/// The names of all objects, since nothing may be opened while they are gone through.
struct Names {
  char* names[4096];
  int count = 0;
};

void* findAnywhere() {
  auto* const names = static_cast<Names*>(calloc(1, sizeof(Names)));
  if (!names) return nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* context) {
        auto& all = *static_cast<Names*>(context);
        if (!info->dlpi_name || !strstr(info->dlpi_name, "nccl")) return 0;
        if (all.count == static_cast<int>(sizeof all.names / sizeof all.names[0])) return 1;
        if (char* const copy = strdup(info->dlpi_name)) all.names[all.count++] = copy;
        return 0;
      },
      names);
  void* found = nullptr;
  for (int i = 0; i < names->count; ++i) {
    if (!found) found = findLoaded(names->names[i]);
    free(names->names[i]);
  }
  free(names);
  return found;
}

/// A function of the object itself that is loaded at `base`: looked up by its handle it may be one of what it is linked
/// to, or, in a program, ours here. Null: it has none.
void* ownFunction(void* object, const char* symbol, const void* base) {
  void* const found = loader().symbol(object, symbol);
  const char* name;
  const void* its = nullptr;
  return found && objectAt(found, name, its) && its == base ? found : nullptr;
}

/// Whether the object of that name, loaded at `base`, is NCCL Falcon's: one of our libraries, or an earlier one.
bool isFalcon(const char* name, const void* base) {
  void* const object = opened(name);
  if (!object) return false;
  const bool hasOurs = ownFunction(object, "ncclFalconGetVersion", base);
  loader().close(object);
  return hasOurs;
}

/// A function of the library that `caller` would have called; null: there is none in this process.
void* functionFor(const void* caller) {
  const char* name;
  const void* base;
  if (objectAt(caller, name, base)) {
    if (void* const handedOver = handedOverBy(base)) return handedOver;
    // NCCL Falcon calls none of NCCL's by its name: there a callback of the application's ends in a jump to us.
    void* const found = isFalcon(name, base) ? nullptr : findLoaded(name);
    if (found) return found;
  }
  if (void* const found = loader().symbol(RTLD_DEFAULT, telltale)) return found;
  return findAnywhere();
}

void fill(VendorTable& table, void* library) {
#define FALCON_FIND(name) table.name = reinterpret_cast<decltype(table.name)>(loader().symbol(library, "pnccl" #name));
  FALCON_FRONT_FUNCTIONS(FALCON_FIND)
#undef FALCON_FIND
  const auto find = [library](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(loader().symbol(library, name));
  };
  find(table.questions.count, "pncclCommCount");
  find(table.questions.userRank, "pncclCommUserRank");
  find(table.questions.device, "pncclCommCuDevice");
}

/// Whether `library` is NCCL Falcon: it has functions of nccl_falcon.h itself. Another version may lack some; two that
/// both watched would be in each other's way.
bool fill(ExtensionTable& table, void* library, const void* base) {
  bool all = true;
  const auto find = [&](auto& function, const char* symbol) {
    void* const found = ownFunction(library, symbol, base);
    all = all && found;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
#define FALCON_FIND(name) find(table.name, "ncclFalcon" #name);
  FALCON_EXTENSION_FUNCTIONS(FALCON_FIND)
#undef FALCON_FIND
  if (!table.GetVersion) return false;
  int version = 0;
  if (!all || table.GetVersion(&version) != ncclSuccess || version != NCCL_FALCON_API_VERSION)
    say("the program's libnccl.so.2 is NCCL Falcon of another version than libnccl-falcon.so: calls go straight to it, "
        "and nothing is watched here; use both of one build, or only one of them");
  return true;
}

constexpr int mostVendors = 16;
Atomic<const Vendor*> vendors[mostVendors];
const Vendor none{};

/// The library that has `function`, made known at its first need; of two threads that make it the first one's stays.
const Vendor* vendorWith(void* function) {
  const char* name;
  const void* base;
  if (!function || !objectAt(function, name, base)) return &none;
  for (const auto& each : vendors) {
    const Vendor* const known = each.load();
    if (known && known->base == base) return known;
  }
  void* const library = opened(name);  // never closed: what is in the tables stays
  auto* const made = static_cast<Vendor*>(calloc(1, sizeof(Vendor)));
  if (!library || !made) return &none;
  fill(made->table, library);
  made->base = base;
  made->isFalconItself = fill(made->own, library, base);
  made->home = {&made->table, made->isFalconItself ? nullptr : core(), made->isFalconItself ? &made->own : nullptr,
                &made->home};
  for (auto& each : vendors) {
    if (each.replace(nullptr, made)) break;
    if (each.load()->base == base) return each.load();
    severalVendors.store(true);
  }
  return made;
}

struct Site {
  Atomic<const void*> caller;
  Route route;
};
constexpr unsigned siteCount = 4096, mostSteps = 64;
Site sites[siteCount];
const void* const beingWritten = &sites;

unsigned firstSiteOf(const void* caller) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long>(caller) * 0x9e3779b97f4a7c15UL >> 52);
}

/// The vendor's own code calls, or ours does: a function of the vendor's that we have called, and that ends in a jump
/// to another one, leaves our address.
bool isByItself(const Vendor& vendor, const void* caller) {
  const char *name, *ownName;
  const void *base = nullptr, *ownBase = nullptr;
  if (!objectAt(caller, name, base)) return false;
  return base == vendor.base || (objectAt(reinterpret_cast<const void*>(&routeFrom), ownName, ownBase) &&
                                 base == ownBase && !isWhereCallbacksAreCalled(caller));
}

Route routeTo(const Vendor& vendor, const void* caller) {
  Route route = vendor.home;
  if (isByItself(vendor, caller)) route.core = nullptr;
  return route;
}

/// Null: no library of NCCL is loaded.
const Route* newRoute(const void* caller) {
  const Vendor* const vendor = vendorWith(functionFor(caller));
  if (vendor == &none) return nullptr;
  const Route route = routeTo(*vendor, caller);
  unsigned place = firstSiteOf(caller);
  for (unsigned step = 0; step < mostSteps; ++step, place = (place + 1) % siteCount) {
    Site& site = sites[place];
    if (!site.caller.replace(nullptr, beingWritten)) continue;
    site.route = route;
    site.caller.store(caller);
    return &site.route;
  }
  static thread_local Route notKept;
  notKept = route;
  return &notKept;
}

const Route* findRoute(const void* caller) {
  unsigned place = firstSiteOf(caller);
  for (unsigned step = 0; step < mostSteps; ++step, place = (place + 1) % siteCount) {
    const void* const known = sites[place].caller.load();
    if (known == caller) return &sites[place].route;
    if (!known) break;
  }
  return newRoute(caller);
}

}  // namespace

constinit Atomic<bool> severalVendors{};

const void* baseOf(const void* code) {
  const char* name;
  const void* base = nullptr;
  return objectAt(code, name, base) ? base : nullptr;
}

const Route& routeFrom(const void* caller) {
  if (const Route* const route = findRoute(caller)) [[likely]]
    return *route;
  static const Route nowhere{&none.table, nullptr, nullptr, &nowhere};
  say("no library of NCCL is loaded that this call could go on to");
  return nowhere;
}

Route extensionRouteFrom(const void* caller) {
  if (const Route* const route = findRoute(caller)) [[likely]]
    return *route;
  return {&none.table, core(), nullptr, nullptr};
}

}  // namespace falcon::front
