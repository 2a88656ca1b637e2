#include "validate/compute_test.h"

#include <time.h>

#include <cmath>
#include <vector>

namespace falcon::validate {
namespace {

constexpr int matrixSize = 192;
constexpr double operationsPerProduct = 2.0 * matrixSize * matrixSize * matrixSize;

Nanoseconds threadProcessorTime() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Nanoseconds(time.tv_nsec);
}

std::vector<float> matrix(int seed) {
  std::vector<float> values(matrixSize * matrixSize);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7 + seed) % 13) / 13.0f;
  return values;
}

class GemmBenchmark final : public ComputeBenchmark {
 public:
  GemmBenchmark(const Clock& clock, const MatrixProduct* product, std::function<bool()> stop)
      : clock_(clock), product_(product), stop_(std::move(stop)) {}

  Result<ComputeScore> run(Nanoseconds span) override {
    const MatrixProduct& product = product_ ? *product_ : matrixProduct();
    const auto a = matrix(1), b = matrix(5);
    std::vector<float> c(matrixSize * matrixSize);
    product.multiply(matrixSize, a.data(), b.data(), c.data());  // warm: pages touched, the library's buffers made

    ComputeScore score;
    score.product = product.name;
    const ProcessorStat before = readProcessorStat();
    const auto processorBefore = threadProcessorTime();
    const auto start = clock_.now();
    std::uint64_t products = 0;
    // One product takes a fraction of a millisecond; the clock is read after each, so the span ends on time.
    do {
      if (stop_ && stop_()) return Error(ErrorCode::inProgress, "the compute test was stopped");
      product.multiply(matrixSize, a.data(), b.data(), c.data());
      ++products;
      score.wall = clock_.now() - start;
    } while (score.wall < span);
    score.processor = threadProcessorTime() - processorBefore;
    score.stat = readProcessorStat() - before;
    if (!std::isfinite(c[0]) || score.wall <= 0ns) return Error::internal("the matrix product is not a number");
    score.gigaflopsPerSecond = static_cast<double>(products) * operationsPerProduct / seconds(score.wall) / 1e9;
    return score;
  }

 private:
  const Clock& clock_;
  const MatrixProduct* product_;
  std::function<bool()> stop_;
};

}  // namespace

std::unique_ptr<ComputeBenchmark> makeComputeBenchmark(const Clock& clock, const MatrixProduct* product,
                                                       std::function<bool()> stop) {
  return std::make_unique<GemmBenchmark>(clock, product, std::move(stop));
}

}  // namespace falcon::validate
