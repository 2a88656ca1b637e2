// What stands around every function of the C ABI: no exception leaves, every error leaves its text for
// ncclGetLastError.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "api/exports.h"
#include "base/contained.h"
#include "base/log.h"
#include "base/result.h"

namespace falcon::api {

/// The C code of an error, whose text is kept for the calling thread (it may have been decided on another one).
ncclResult_t finish(const Error& error);
inline ncclResult_t finish(const Status& status) {
  return status ? ncclSuccess : finish(status.error());
}

/// Short enough to need no memory itself.
inline constexpr const char* outOfMemory = "out of memory";

/// Runs `body`, which gives a Status. What it throws becomes an error that begins with `what`.
template <class Body>
Status withoutExceptions(const char* what, Body&& body) {
  try {
    try {
      return body();
    } catch (const std::bad_alloc&) {
      return log::decided(Error::system("{}: out of memory", what));
    } catch (const std::exception& exception) {
      return log::decided(Error::internal("{}: {}", what, exception.what()));
    }
  } catch (const std::bad_alloc&) {
    return Error(ErrorCode::system, outOfMemory);
  }
}

/// Gives `keep` a copy of `error`; where there is no memory for its words, one of the same code.
template <class Keep>
void keepError(const Error& error, Keep&& keep) noexcept {
  if (!contained([&] { keep(Error(error)); }, [](const char*) {})) keep(Error(error.code(), outOfMemory));
}

/// As withoutExceptions(), around a function of the C ABI.
template <class Body>
ncclResult_t guarded(const char* function, Body&& body) {
  return finish(withoutExceptions(function, std::forward<Body>(body)));
}

/// invalidArgument when a pointer that must name something is null.
Status requireOutput(const char* function, const char* name, const void* pointer);

}  // namespace falcon::api
