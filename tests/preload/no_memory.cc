// Preloaded, takes the memory away from one object of the process: what its code asks malloc for, from the allocation
// NO_MEMORY_FROM to NO_MEMORY_TO (the first is 0), it does not get. NO_MEMORY_IN is a part of the object's file name.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
}

namespace {

constinit std::atomic<std::uintptr_t> codeBegin{0}, codeEnd{0};
constinit std::atomic<long> asked{0};

long number(const char* name) {
  const char* const text = std::getenv(name);
  return text ? std::atol(text) : -1;
}

int look(dl_phdr_info* object, std::size_t, void*) {
  const char* const wanted = std::getenv("NO_MEMORY_IN");
  if (!wanted || !object->dlpi_name || !std::strstr(object->dlpi_name, wanted)) return 0;
  std::uintptr_t begin = UINTPTR_MAX, end = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const std::uintptr_t start = object->dlpi_addr + segment.p_vaddr;
    begin = start < begin ? start : begin;
    end = start + segment.p_memsz > end ? start + segment.p_memsz : end;
  }
  codeEnd = end;
  codeBegin = begin;
  return 1;
}

/// The loader has its lock while it asks for memory, so it is asked once, and before anything can be refused.
bool isRefused(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (codeBegin == 0 || address < codeBegin || address >= codeEnd) return false;
  static const long from = number("NO_MEMORY_FROM"), to = number("NO_MEMORY_TO");
  const long each = asked++;
  return each >= from && each <= to;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* dlopen(const char* file, int flags) noexcept {
  static const auto real = reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_NEXT, "dlopen"));
  void* const object = real(file, flags);
  if (codeBegin == 0) dl_iterate_phdr(look, nullptr);
  return object;
}

__attribute__((visibility("default"))) void* malloc(std::size_t size) noexcept {
  return isRefused(__builtin_return_address(0)) ? nullptr : __libc_malloc(size);
}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t size) noexcept {
  return isRefused(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void* realloc(void* memory, std::size_t size) noexcept {
  return isRefused(__builtin_return_address(0)) ? nullptr : __libc_realloc(memory, size);
}

}  // extern "C"
