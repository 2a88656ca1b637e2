#include "preload/letting_go.h"

namespace falcon::preload {

void letGoOfCallsOn(WatchedCommunicator& communicator, Directory& directory) {
  communicator.willEnd();
  // One process has one trap: of a group it may have been another communicator's by which the caller is held.
  const Watch* watch = communicator.watch();
  const Directory::Use other = watch ? Directory::Use() : directory.findWatched();
  if (other) watch = (*other).watch();
  if (watch && watch->hooks.hold) watch->hooks.hold->lookAgain();
  communicator.awaitHeldGroups();
}

}  // namespace falcon::preload
