#include "inject/claim.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/format.h"

namespace falcon::tools {
namespace {

constexpr off_t links = off_t{1} << 40;  // behind what rank injections lock
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
  switch (static_cast<RankInjection>(range.l_len)) {
    case RankInjection::slowRank:
      return "slow-rank";
    case RankInjection::memoryHog:
      return "memory-hog";
    case RankInjection::hang:
      return "hang";
  }
  return "one of another version";
}

FileDescriptor lockFileOf(pid_t process) {
  return FileDescriptor(::open(fmt::format("/proc/{}/comm", process).c_str(), O_RDWR | O_CLOEXEC));
}

Result<FileDescriptor> claim(FileDescriptor file, short type, off_t begin, off_t length, const std::string& victim) {
  struct flock range = rangeOf(type, begin, length);
  if (::fcntl(file.get(), F_OFD_SETLK, &range) == 0) return file;
  if (errno != EAGAIN && errno != EACCES) return Error::system("cannot lock {}: {}", victim, std::strerror(errno));
  struct flock other = rangeOf(type, begin, length);
  const bool known = ::fcntl(file.get(), F_OFD_GETLK, &other) == 0 && other.l_type != F_UNLCK;
  return Error::system(
      "another injection is in force on {} already: {}; wait for its end, or end it with SIGTERM to that `falcon "
      "inject`, and try again",
      victim, known ? describe(other) : "it is just ending");
}

}  // namespace

Result<FileDescriptor> claimRank(const RankDescription& victim, RankInjection injection) {
  // Memory hogs undo nothing that another one needs: they share the rank.
  const short type = injection == RankInjection::memoryHog ? F_RDLCK : F_WRLCK;
  FileDescriptor file = lockFileOf(victim.process);
  if (!file)
    return Error::system("rank {} (process {}) is gone, or not yours: {}", victim.rank, victim.process,
                         std::strerror(errno));
  return claim(std::move(file), type, 0, static_cast<off_t>(injection), fmt::format("process {}", victim.process));
}

Result<FileDescriptor> claimLink(const JobDescription& job, Link link, bool bothWays) {
  // Its first rank that lives stands for the job: others find the same one.
  for (const RankDescription& rank : job.ranks)
    if (FileDescriptor file = rank.process > 0 ? lockFileOf(rank.process) : FileDescriptor())
      return claim(std::move(file), F_WRLCK, links, lengthFor(link, bothWays), "a link of this job");
  return Error::system("no rank of job {} is there and yours", job.job);
}

}  // namespace falcon::tools
