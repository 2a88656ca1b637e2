#include "api/host_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>

#include "base/log.h"

namespace falcon::api {
namespace {

constexpr std::size_t hugePage = 2 << 20;

/// What was given out, by address. Never destroyed: programs free memory while they exit.
struct Allocations {
  std::mutex mutex;
  std::map<void*, std::size_t> sizes;
};
Allocations& allocations() {
  static auto* all = new Allocations;
  return *all;
}

std::size_t roundedUp(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Result<void*> allocateHostMemory(std::size_t bytes) {
  const bool huge = bytes >= hugePage;
  const std::size_t unit = huge ? hugePage : static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > PTRDIFF_MAX - 2 * unit)
    return log::decided(Error::invalidArgument("ncclMemAlloc: {} bytes do not fit into memory", bytes));
  const std::size_t size = roundedUp(bytes, unit);
  // Enough to cut an aligned piece out of.
  const std::size_t mapped = huge ? size + unit : size;
  void* whole = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (whole == MAP_FAILED)
    return log::decided(Error::system("ncclMemAlloc: {} bytes cannot be had: {}", bytes, strerror(errno)));
  auto* const begin = static_cast<char*>(whole);
  auto* const address =
      begin + (roundedUp(reinterpret_cast<std::uintptr_t>(begin), unit) - reinterpret_cast<std::uintptr_t>(begin));
  if (address > begin) munmap(begin, static_cast<std::size_t>(address - begin));
  if (address + size < begin + mapped)
    munmap(address + size, static_cast<std::size_t>(begin + mapped - (address + size)));
  if (huge) madvise(address, size, MADV_HUGEPAGE);  // advice only: a kernel without them is as good
  Allocations& all = allocations();
  const std::lock_guard lock(all.mutex);
  all.sizes.emplace(address, size);
  return static_cast<void*>(address);
}

bool freeHostMemory(void* address) {
  std::size_t size = 0;
  {
    Allocations& all = allocations();
    const std::lock_guard lock(all.mutex);
    const auto found = all.sizes.find(address);
    if (found == all.sizes.end()) return false;
    size = found->second;
    all.sizes.erase(found);
  }
  munmap(address, size);
  return true;
}

}  // namespace falcon::api
