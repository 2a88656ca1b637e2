// What can be told apart of one sender's signals (one-sided messages).
#pragma once

namespace falcon::transport {

/// A kind is an index and a context together.
inline constexpr int signalIndices = 16, signalContexts = 4, signalKinds = signalIndices * signalContexts;

}  // namespace falcon::transport
