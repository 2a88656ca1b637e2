#include "measuring_loop.h"

#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace falcon::bench {
namespace {

constexpr float poison = -1;

/// Page-aligned memory straight from the kernel, so that no library's allocator settings change the buffers.
class Pages {
 public:
  explicit Pages(std::size_t elements) : bytes_(elements * sizeof(float)) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ != MAP_FAILED) return;
    std::perror("no memory for the buffers");
    std::exit(1);
  }
  ~Pages() { munmap(memory_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  float* floats() const { return static_cast<float*>(memory_); }

 private:
  std::size_t bytes_;
  void* memory_;
};

double secondsOf(const std::function<void()>& call, long times) {
  const auto begin = std::chrono::steady_clock::now();
  for (long i = 0; i < times; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Calls until an eighth of the budget has passed, and thrice where there is time for it, as the first calls are slow.
/// Returns the seconds of a call in the fastest round, on the slowest rank.
double warmUp(Library& library, const std::function<void()>& call, double budget) {
  double fastest = budget, total = 0;
  for (long times = 1, rounds = 1;; ++rounds) {
    library.barrier();
    const double spent = library.maximum(secondsOf(call, times));
    fastest = std::min(fastest, spent / static_cast<double>(times));
    total += spent;
    if (total >= budget || (rounds >= 3 && spent >= budget / 8)) return fastest;
    if (spent < budget / 8) times *= 4;
  }
}

}  // namespace

std::optional<Task> parseTask(const std::string& line) {
  std::istringstream words(line);
  std::string name;
  Task task{};
  if (!(words >> name >> task.bytes >> task.seconds >> task.batches >> task.verify)) return std::nullopt;
  const auto collective = findCollective(name);
  if (!collective || task.batches < 1 || task.seconds <= 0) return std::nullopt;
  task.collective = *collective;
  return task;
}

Measurement measure(Library& library, const Task& task) {
  Measurement result;
  const int rank = library.rank();
  const Shape shape = shapeOf(task.collective, task.bytes, library.ranks());
  const Pages send(shape.send), receive(shape.receive);
  for (std::size_t i = 0; i < shape.send; ++i) send.floats()[i] = valueOf(rank, i);
  for (std::size_t i = 0; i < shape.receive; ++i) receive.floats()[i] = poison;
  const auto call = library.prepare(task.collective, shape, {send.floats(), receive.floats()});
  if (!call) return result;
  result.supported = true;

  if (task.verify) {
    call();
    double wrong = 0;
    if (rank == 0 || !onlyRootReceives(task.collective))
      for (std::size_t i = 0; i < shape.receive; ++i)
        wrong += receive.floats()[i] != expectedOf(task.collective, shape, rank, library.ranks(), i);
    result.wrong = library.maximum(wrong);
  }
  const double estimate = warmUp(library, call, task.seconds);
  result.calls = std::max(1L, static_cast<long>(task.seconds / task.batches / estimate));
  double total = 0;
  for (int batch = 0; batch < task.batches && total < 3 * task.seconds; ++batch) {
    library.barrier();
    const double slowest = library.maximum(secondsOf(call, result.calls));
    total += slowest;
    result.microseconds.push_back(1e6 * slowest / static_cast<double>(result.calls));
  }
  library.barrier();  // nobody's buffers go while another still reads them
  return result;
}

}  // namespace falcon::bench
