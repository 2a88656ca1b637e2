// Whether this library watches, where the preload library may be in the process as well (base/watch_claim.h).
#pragma once

namespace falcon::api {

struct Watcher {
  bool isThisLibrary = false;
  /// Of dlopen: the preload library, which watches instead and is of the same build. Null: none, or of another.
  void* preload = nullptr;
};

/// Asks before this library begins to watch: the loader, so that nobody may wait for who does it.
Watcher findWatcher();
/// In the log, once it is known.
void say(const Watcher& watcher);

}  // namespace falcon::api
