#include "front/homes.h"

#include "front/atomics.h"

namespace falcon::front {
namespace {

struct Entry {
  Atomic<const void*> communicator;
  Atomic<const Route*> home;
};
constexpr unsigned capacity = 4096, mostSteps = 64;
Entry entries[capacity];
// No communicator has these addresses.
const void* const beingWritten = &entries[0];
const void* const formerlyUsed = &entries[1];

unsigned firstEntryOf(const void* communicator) {
  return static_cast<unsigned>(reinterpret_cast<unsigned long>(communicator) * 0x9e3779b97f4a7c15UL >> 52);
}

Entry* find(const void* communicator) {
  unsigned place = firstEntryOf(communicator);
  for (unsigned step = 0; step < mostSteps; ++step, place = (place + 1) % capacity) {
    const void* const known = entries[place].communicator.load();
    if (known == communicator) return &entries[place];
    if (!known) break;
  }
  return nullptr;
}

}  // namespace

void keepHome(ncclComm_t communicator, const Route& made) {
  if (!communicator) return;
  forgetHome(communicator);
  unsigned place = firstEntryOf(communicator);
  for (unsigned step = 0; step < mostSteps; ++step, place = (place + 1) % capacity) {
    Entry& entry = entries[place];
    if (!entry.communicator.replace(nullptr, beingWritten) && !entry.communicator.replace(formerlyUsed, beingWritten))
      continue;
    entry.home.store(made.home);
    entry.communicator.store(communicator);
    return;
  }
}

void forgetHome(ncclComm_t communicator) {
  if (!communicator) return;
  if (Entry* const entry = find(communicator)) entry->communicator.replace(communicator, formerlyUsed);
}

const Route& homeInTable(ncclComm_t communicator, const Route& byCaller) {
  const Entry* const entry = communicator ? find(communicator) : nullptr;
  const Route* const home = entry ? entry->home.load() : nullptr;
  if (!home || entry->communicator.load() != communicator) return byCaller;
  // From the library itself it is only forwarded, which its home does not say.
  return byCaller.home == home ? byCaller : *home;
}

}  // namespace falcon::front
