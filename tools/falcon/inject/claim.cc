#include "inject/claim.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "base/format.h"

namespace falcon::tools {
namespace {

constexpr off_t bytesOfRank = 2;
constexpr off_t links = off_t{1} << 40;  // behind all ranks
constexpr off_t mostRanks = 1 << 20;

struct flock rangeOf(short type, off_t begin, off_t length) {
  struct flock range {};
  range.l_type = type;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = length;
  return range;
}

off_t lengthFor(Link link, bool bothWays) {
  return 1 + ((link.from * mostRanks + link.to) << 1 | (bothWays ? 1 : 0));
}

std::string describe(const struct flock& range) {
  if (range.l_start >= links) {
    const off_t code = range.l_len - 1;
    return fmt::format("slow-link --from {} --to {}{}", (code >> 1) / mostRanks, (code >> 1) % mostRanks,
                       (code & 1) != 0 ? " --both-ways" : "");
  }
  const bool hog = range.l_len == static_cast<off_t>(RankInjection::memoryHog);
  return fmt::format("{} --rank {}", hog ? "memory-hog" : "slow-rank", range.l_start / bytesOfRank);
}

Result<FileDescriptor> claim(const std::string& path, short type, off_t begin, off_t length, const char* victim) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return Error::system("cannot open {} for a lock on it: {}", path, std::strerror(errno));
  struct flock range = rangeOf(type, begin, length);
  if (::fcntl(file.get(), F_OFD_SETLK, &range) == 0) return file;
  if (errno != EAGAIN && errno != EACCES) return Error::system("cannot lock {}: {}", path, std::strerror(errno));
  struct flock other = rangeOf(type, begin, length);
  const bool known = ::fcntl(file.get(), F_OFD_GETLK, &other) == 0 && other.l_type != F_UNLCK;
  return Error::system(
      "another injection is in force on {} already: {}; wait for its end, or end it with SIGTERM to that `falcon "
      "inject`, and try again",
      victim, known ? describe(other) : "it is just ending");
}

}  // namespace

Result<FileDescriptor> claimRank(const JobDescription& job, Rank rank, RankInjection injection) {
  // Memory hogs undo nothing that another one needs: they share the rank.
  const short type = injection == RankInjection::memoryHog ? F_RDLCK : F_WRLCK;
  return claim(job.path, type, bytesOfRank * rank, static_cast<off_t>(injection), "this rank");
}

Result<FileDescriptor> claimLink(const JobDescription& job, Link link, bool bothWays) {
  return claim(job.path, F_WRLCK, links, lengthFor(link, bothWays), "a link of this job");
}

}  // namespace falcon::tools
