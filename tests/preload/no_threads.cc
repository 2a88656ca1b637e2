// Preloaded, refuses a thread others while it wants it so.
#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

namespace {

constinit thread_local bool refused = false;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void refuseThreads(int refuse) {
  refused = refuse != 0;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                          void* (*body)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  return refused ? EAGAIN : create(thread, attributes, body, argument);
}
}
