#include "transport/peer_memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "transport/doorbell.h"

namespace falcon::transport {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

MemoryOffer ownMemoryOffer(bool allowed) {
  MemoryOffer offer;
  const std::uint64_t& nonce = *processIdentity();  // localPeer() comes first, and fails where there is none
  offer.nonce = nonce;
  if (!allowed) return offer;
  offer.process = getpid();
  offer.nonceAt = reinterpret_cast<std::uintptr_t>(&nonce);
  return offer;
}

Result<PeerMemory> PeerMemory::attach(const MemoryOffer& offer) {
  PeerMemory memory;
  memory.peer_ = offer;
  if (offer.process == 0) return Error::system("NCCL_P2P_DISABLE forbids to read its memory");
  if (const Status right = memory.checkNonce(); !right) return right.error();
  return memory;
}

Status PeerMemory::checkNonce() const {
  std::uint64_t found = 0;
  iovec here{&found, sizeof found};
  iovec there{pointer(peer_.nonceAt), sizeof found};
  const auto got = process_vm_readv(peer_.process, &here, 1, &there, 1, 0);
  if (got < 0) return Error::system("process {} cannot be read: {}", peer_.process, strerror(errno));
  if (got != sizeof found || found != peer_.nonce)
    return Error::system("process {} is not the peer; is it in another pid namespace?", peer_.process);
  return {};
}

Status PeerMemory::write(const std::byte* from, std::uint64_t address, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    if (!checkNonce()) return Error::remote("its process has ended");
    iovec here{const_cast<std::byte*>(from) + done, bytes - done};
    iovec there{pointer(address + done), bytes - done};
    const auto put = process_vm_writev(peer_.process, &here, 1, &there, 1, 0);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == ESRCH) return Error::remote("its process has ended");
    if (put <= 0)
      return Error::system("cannot be written at {:#x}: {}", address + done,
                           put < 0 ? std::strerror(errno) : "nothing went");
    done += static_cast<std::size_t>(put);
  }
  return {};
}

Status PeerMemory::read(std::byte* to, std::uint64_t address, std::size_t bytes, bool last) const {
  std::uint64_t found = 0;
  for (std::size_t done = 0;;) {
    iovec here[2] = {{to + done, bytes - done}, {&found, sizeof found}};
    iovec there[2] = {{pointer(address + done), bytes - done}, {pointer(peer_.nonceAt), sizeof found}};
    const int parts = last ? 2 : 1;
    const auto got = process_vm_readv(peer_.process, here, parts, there, parts, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == ESRCH) return Error::remote("its process has ended");
    if (got <= 0)
      return Error::system("cannot be read at {:#x}: {}", address + done,
                           got < 0 ? std::strerror(errno) : "nothing came");
    if (static_cast<std::size_t>(got) < bytes - done) {
      // A short read ends at memory that is not there; what comes next tells why. It never counts as done.
      done += static_cast<std::size_t>(got);
      continue;
    }
    const auto more = static_cast<std::size_t>(got) - (bytes - done);
    if (!last) return {};
    if (more == sizeof found && found == peer_.nonce) return {};
    return Error::remote("its process has ended, and another one has its number");
  }
}

}  // namespace falcon::transport
