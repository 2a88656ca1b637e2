// The guardian's process itself is the hog: it ends with its owner.
#include <sys/mman.h>

#include <cstring>

#include "inject/injection.h"
#include "inject/watch_time.h"
#include "machine/cpu_cgroup.h"

namespace falcon::tools {
namespace {

constexpr std::size_t bufferBytes = 256u << 20;       // more than any last-level cache
constexpr std::size_t pieceBytes = bufferBytes / 16;  // so that it soon sees its owner's end, also with little time
constexpr Nanoseconds hogObservation = 1s;

// Copies the buffer's one half over the other, piece by piece.
class MemoryStream {
 public:
  explicit MemoryStream(SharedCounter bytes) : bytes_(std::move(bytes)) {}

  Nanoseconds operator()() {
    if (!buffer_ && !allocate()) return 1s;
    // The first round writes every page once: untouched ones would all be one and the same page of zeros.
    if (touched_ < bufferBytes) {
      std::memset(buffer_ + touched_, 1, pieceBytes);
      touched_ += pieceBytes;
      *bytes_ += pieceBytes;
      return 0s;
    }
    std::memcpy(buffer_ + at_, buffer_ + bufferBytes / 2 + at_, pieceBytes);
    at_ = (at_ + pieceBytes) % (bufferBytes / 2);
    *bytes_ += 2 * pieceBytes;  // read and written
    return 0s;
  }

 private:
  // Not before the first step: it belongs to the guardian's process.
  bool allocate() {
    void* memory = ::mmap(nullptr, bufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) buffer_ = static_cast<char*>(memory);
    return buffer_ != nullptr;
  }

  SharedCounter bytes_;
  char* buffer_ = nullptr;
  std::size_t touched_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::unique_ptr<Injection>> memoryHog(const JobDescription& job, Rank rank) {
  const auto victim = rankOf(job, rank);
  if (!victim) return victim.error();
  auto claim = claimRank(*victim, RankInjection::memoryHog);
  if (!claim) return claim.error();
  const auto bytes = makeSharedCounter();
  if (!bytes) return bytes.error();
  ProcessorUse use(victim->process);
  if (auto watched = watchFor(hogObservation); !watched) return watched.error();
  Outcome outcome;
  outcome.kind = InjectionKind::memoryHog;
  outcome.rank = rank;
  outcome.coresBefore = use.cores().value_or(0);
  outcome.started = momentNow();
  use.restart();
  auto guardian = Guardian::start({[] {}, MemoryStream(*bytes), claim->get()});
  if (!guardian) return guardian.error();
  if (!victim->cgroup.empty())
    if (auto done = CpuCgroup(victim->cgroup).add(guardian->process()); !done) return done.error();
  return std::make_unique<Injection>(outcome, std::move(*guardian), std::move(*claim),
                                     readUseAnd(&Outcome::hogBytes, use, *bytes));
}

}  // namespace falcon::tools
