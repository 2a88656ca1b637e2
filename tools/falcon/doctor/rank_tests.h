// What a rank measures alone.
#pragma once

#include <string>

#include "base/socket_address.h"
#include "doctor/findings.h"

namespace falcon::doctor {

/// How long each test takes.
struct TestSpans {
  Nanoseconds compute = 500ms;  ///< each precision; five periods of a CPU quota: shorter spans do not see one
  Nanoseconds memory = 200ms;
  Nanoseconds loopback = 100ms;
  Nanoseconds gpu = 800ms;  ///< all products and copies together
};

/// Runs all of them, one after the other, on the calling thread.
/// @param product  set to the name of the matrix product that was used
RankSample measureRank(const SocketAddress& own, const TestSpans& spans, std::string& product);

/// Bytes a second over a connection from `own` to `own`. Errors: no connection.
Result<double> testLoopback(const SocketAddress& own, Nanoseconds span);

}  // namespace falcon::doctor
