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

template <class Number>
std::vector<Number> matrix(int seed) {
  std::vector<Number> values(matrixSize * matrixSize);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Number>((i * 7 + seed) % 13) / Number(13);
  return values;
}

void multiply(const MatrixProduct& product, const float* a, const float* b, float* c) {
  product.multiply(matrixSize, a, b, c);
}
void multiply(const MatrixProduct& product, const double* a, const double* b, double* c) {
  product.multiplyDouble(matrixSize, a, b, c);
}

template <class Number>
class GemmBenchmark final : public ComputeBenchmark {
 public:
  GemmBenchmark(const Clock& clock, const MatrixProduct* product, std::function<bool()> stop)
      : clock_(clock), product_(product), stop_(std::move(stop)) {}

  Result<ComputeScore> run(Nanoseconds span) override {
    const MatrixProduct& product = product_ ? *product_ : matrixProduct();
    const auto a = matrix<Number>(1), b = matrix<Number>(5);
    std::vector<Number> c(matrixSize * matrixSize);
    multiply(product, a.data(), b.data(), c.data());  // warm: pages touched, the library's buffers made

    ComputeScore score;
    score.product = product.name;
    const ProcessorStat before = readProcessorStat();
    const auto processorBefore = threadProcessorTime();
    const auto start = clock_.now();
    std::uint64_t products = 0;
    // One product takes a fraction of a millisecond; the clock is read after each, so the span ends on time.
    do {
      if (stop_ && stop_()) return Error(ErrorCode::inProgress, "the compute test was stopped");
      multiply(product, a.data(), b.data(), c.data());
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
                                                       std::function<bool()> stop, Precision precision) {
  if (precision == Precision::f64) return std::make_unique<GemmBenchmark<double>>(clock, product, std::move(stop));
  return std::make_unique<GemmBenchmark<float>>(clock, product, std::move(stop));
}

}  // namespace falcon::validate
