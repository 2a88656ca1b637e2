// The limit that the others are held against: every rank copies `bytes` with memcpy, all at the same time. Takes the
// number of ranks as its first argument and forks them. Every collective is that copy.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "serve.h"

#include <sched.h>

namespace falcon::bench {
namespace {

constexpr int mostRanks = 64;

/// Lies in memory that the ranks share.
struct Meeting {
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
  double values[mostRanks]{};
};

class Copy : public Library {
 public:
  Copy(Meeting& meeting, int rank, int ranks) : meeting_(meeting), rank_(rank), ranks_(ranks) {}

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::function<void()> prepare(Collective, const Shape& shape, const Buffers& buffers) override {
    const std::size_t bytes = std::min(shape.send, shape.receive) * sizeof(float);
    return [=] {
      std::memcpy(buffers.receive, buffers.send, bytes);
      asm volatile("" ::: "memory");  // the compiler may not leave out a copy that nobody reads
    };
  }

  double maximum(double value) override {
    meeting_.values[rank_] = value;
    barrier();
    double highest = 0;
    for (int one = 0; one < ranks_; ++one) highest = std::max(highest, meeting_.values[one]);
    barrier();
    return highest;
  }

  void barrier() override {
    const int round = meeting_.round.load();
    if (meeting_.arrived.fetch_add(1) + 1 == ranks_) {
      meeting_.arrived.store(0);
      meeting_.round.fetch_add(1);
    }
    while (meeting_.round.load() == round) sched_yield();
  }

 private:
  Meeting& meeting_;
  int rank_, ranks_;
};

}  // namespace
}  // namespace falcon::bench

int main(int argc, char** argv) {
  using namespace falcon::bench;
  const int ranks = argc > 1 ? std::atoi(argv[1]) : 0;
  if (ranks < 1 || ranks > mostRanks) {
    std::fprintf(stderr, "usage: bench_copy RANKS (--control PATH | task ...)\n");
    return 2;
  }
  void* shared = mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto* meeting = new (shared) Meeting;
  int rank = 0;
  for (int child = 1; child < ranks && rank == 0; ++child)
    if (fork() == 0) rank = child;
  Copy library(*meeting, rank, ranks);
  const int code = serve(library, argc - 1, argv + 1);
  while (rank == 0 && wait(nullptr) > 0) continue;
  return code;
}
