#include "core/network.h"

#include "base/log.h"

namespace falcon::net {

Result<void*> Connection::registerDmaBuffer(void*, std::size_t, int kind, std::uint64_t, int) {
  return log::decided(
      Error::internal("{} reaches no DMA buffers (memory of kind {}): the properties say so", networkName, kind));
}

}  // namespace falcon::net
