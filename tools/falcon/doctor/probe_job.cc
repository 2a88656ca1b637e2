#include "doctor/probe_job.h"

#include <vector>

#include "base/median.h"
#include "base/wire.h"
#include "doctor/rank_world.h"
#include "validate/matrix_product.h"

namespace falcon::doctor {
namespace {

constexpr int matrixSize = 192;
constexpr int productsPerIteration = 20;  // 0.3 GFLOP: some 10 ms of a core with a BLAS
constexpr std::size_t allReduceFloats = 1 << 20;

}  // namespace

Result<ProbeTimes> runProbeJob(int iterations, int& rank) {
  auto world = joinWorld();
  if (!world) return world.error();
  rank = world->rank();
  const auto& product = validate::matrixProduct();
  const std::vector<float> a(matrixSize * matrixSize, 0.5f), b(matrixSize * matrixSize, 0.25f);
  std::vector<float> c(matrixSize * matrixSize), gradient(allReduceFloats, 1.0f);
  std::vector<double> wholes, computes, reduces;
  const auto& clock = SystemClock::instance();
  for (int i = 0; i <= iterations; ++i) {
    const auto start = clock.now();
    for (int k = 0; k < productsPerIteration; ++k) product.multiply(matrixSize, a.data(), b.data(), c.data());
    const auto computed = clock.now();
    const auto reduced = timeAllReduce(*world->communicator, gradient);
    if (!reduced) return reduced.error();
    if (i == 0) continue;  // opens connections, touches pages
    wholes.push_back(seconds(clock.now() - start));
    computes.push_back(seconds(computed - start));
    reduces.push_back(*reduced);
  }
  WireWriter out;
  out.put(median(wholes)).put(median(computes)).put(median(reduces));
  const auto all = world->network().allGather(out.take(), stepLimit);
  if (!all) return all.error();
  ProbeTimes slowest;
  for (const std::string& bytes : *all) {
    WireReader in(bytes);
    slowest.iteration = std::max(slowest.iteration, in.get<double>());
    slowest.compute = std::max(slowest.compute, in.get<double>());
    slowest.allReduce = std::max(slowest.allReduce, in.get<double>());
    if (!in.finished()) return Error::remote("{} bytes are no times of a probe", bytes.size());
  }
  if (const auto done = world->network().barrier(stepLimit); !done) return done.error();
  return slowest;
}

}  // namespace falcon::doctor
