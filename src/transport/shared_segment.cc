#include "transport/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/random.h"
#include "base/reserve_file.h"
#include "base/system_error.h"

namespace falcon::transport {
namespace {

constexpr const char* namePattern = "%d/%d/%16[0-9a-f]";

std::string fileName(const std::string& nonce) {
  return "nccl-falcon-" + nonce;
}

}  // namespace

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(memory_, other.memory_);
  std::swap(name_, other.name_);
  return *this;
}

SharedSegment::~SharedSegment() {
  if (!memory_.empty()) munmap(memory_.data(), memory_.size());
}

Status SharedSegment::map(std::size_t bytes, int flags) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_.get(), 0);
  if (address == MAP_FAILED)
    return Error::system("{} bytes of shared memory cannot be mapped: {}", bytes, strerror(errno));
  memory_ = {static_cast<std::byte*>(address), bytes};
  return {};
}

Result<SharedSegment> SharedSegment::create(std::size_t bytes) {
  // fallocate takes what it is told to, until the kernel kills processes for want of memory.
  if (bytes > largestBytes)
    return Error::system("{} bytes of shared memory are too many; at most {}", bytes, largestBytes);
  SharedSegment segment;
  const auto bits = randomValue<std::uint64_t>();
  if (!bits) return bits.error();
  const std::string secret = fmt::format("{:016x}", *bits);
  segment.file_ = newDescriptor(memfd_create(fileName(secret).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.file_) return Error::system("shared memory cannot be created: {}", reasonOf(errno));
  if (const int failed = reserveFile(segment.file_.get(), bytes); failed != 0)
    return Error::system("{} bytes of shared memory cannot be had: {}", bytes, reasonOf(failed));
  // Sealed, so that no peer can make the other's accesses fault by shrinking it.
  if (fcntl(segment.file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
    return Error::system("shared memory cannot be sealed: {}", strerror(errno));
  if (auto mapped = segment.map(bytes, MAP_SHARED); !mapped) return mapped.error();
  segment.name_ = fmt::format("{}/{}/{}", getpid(), segment.file_.get(), secret);
  return segment;
}

Result<SharedSegment> SharedSegment::createPrivate(std::size_t bytes) {
  SharedSegment segment;
  if (auto mapped = segment.map(bytes, MAP_SHARED | MAP_ANONYMOUS); !mapped) return mapped.error();
  return segment;
}

Result<SharedSegment> SharedSegment::open(const std::string& name, std::size_t bytes) {
  int process = 0;
  int descriptor = 0;
  char secret[17] = "";
  if (std::sscanf(name.c_str(), namePattern, &process, &descriptor, secret) != 3 || std::strlen(secret) != 16)
    return Error::remote("'{}' is not the name of a shared segment", name);
  const std::string path = fmt::format("/proc/{}/fd/{}", process, descriptor);
  // The link's text is compared before opening: in another pid namespace the number may be anybody's, and to open a
  // stranger's pipe or terminal has effects.
  char target[128] = "";
  const auto length = readlink(path.c_str(), target, sizeof target - 1);
  if (length < 0) return Error::system("shared memory of process {} cannot be reached: {}", process, strerror(errno));
  if (std::string_view(target, static_cast<std::size_t>(length)) != "/memfd:" + fileName(secret) + " (deleted)")
    return Error::system("{} is not the peer's shared memory; is it in another pid namespace?", path);
  SharedSegment segment;
  segment.file_.reset(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!segment.file_) return Error::system("shared memory {} cannot be opened: {}", path, reasonOf(errno));
  struct stat status {};
  const int seals = fcntl(segment.file_.get(), F_GET_SEALS);
  if (fstat(segment.file_.get(), &status) != 0 || seals < 0 || (seals & F_SEAL_SHRINK) == 0 ||
      static_cast<std::size_t>(status.st_size) < bytes)
    return Error::remote("shared memory {} has {} bytes or may shrink; {} are needed", path, status.st_size, bytes);
  if (auto mapped = segment.map(bytes, MAP_SHARED); !mapped) return mapped.error();
  segment.file_.reset();
  return segment;
}

void SharedSegment::dropName() {
  file_.reset();
  name_.clear();
}

}  // namespace falcon::transport
