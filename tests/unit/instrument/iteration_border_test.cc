// Where an iteration is cut: behind the last of the calls that come once in it.
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <set>

#include "unit/instrument/call_script.h"

namespace falcon::instrument {
namespace {

/// Numbers of the communicators, in whatever order they were made.
struct Ids {
  CommunicatorId world, data, pipeline, tensor;
};

/// A job whose iterations all take another time, wherever one measures.
class JitteryJob {
 public:
  explicit JitteryJob(const Ids& ids, int slowness = 1) : ids_(ids), slowness_(slowness) {}
  void compute(Nanoseconds usual) {
    script_.wait(slowness_ * usual * std::uniform_int_distribution<>(80, 120)(random_) / 100);
  }
  void call(const char* names, CommunicatorId communicator) { script_.play(names, 1, communicator); }
  /// The application's own border: right behind its last call.
  void border() { borders_.insert(script_.now().count()); }
  const Ids& ids() const { return ids_; }
  CallScript& script() { return script_; }

  /// Judged iterations that begin and end at borders, and all others.
  std::pair<int, int> count() {
    std::pair<int, int> result;
    for (const IterationSample& sample : script_.take()) {
      if (sample.provisional) continue;
      const bool exact =
          borders_.contains(sample.start.count()) && borders_.contains((sample.start + sample.duration).count());
      ++(exact ? result.first : result.second);
    }
    return result;
  }

 private:
  const Ids ids_;
  const int slowness_;
  CallScript script_;
  std::mt19937 random_{11};
  std::set<std::int64_t> borders_;
};

void dataParallel(JitteryJob& job) {
  job.compute(60ms);
  for (const char* bucket : {"Z", "B", "C", "D"}) job.call(bucket, job.ids().data), job.compute(5ms);
  job.call("L", job.ids().world);
}

void gradientsDuringBackward(JitteryJob& job) {  // and nothing at the end
  job.compute(50ms);
  for (const char* bucket : {"B", "Z", "C", "A"}) job.compute(8ms), job.call(bucket, job.ids().data);
}

void pipelined(JitteryJob& job) {
  for (int batch = 0; batch < 4; ++batch) {
    job.compute(8ms), job.call("s", job.ids().pipeline);
    job.compute(16ms), job.call("r", job.ids().pipeline);
  }
  for (const char* bucket : {"Z", "B", "C"}) job.call(bucket, job.ids().data), job.compute(5ms);
  job.call("L", job.ids().world);
}

void tensorParallel(JitteryJob& job) {  // the longest time without a call is in the middle: a pipeline's bubble
  for (int batch = 0; batch < 4; ++batch) {
    job.call("E", job.ids().tensor);
    for (int layer = 0; layer < 4; ++layer) job.compute(2ms), job.call("T", job.ids().tensor);
    job.call("s", job.ids().pipeline);
    job.compute(batch == 2 ? 40ms : 4ms), job.call("r", job.ids().pipeline);
    for (int layer = 0; layer < 4; ++layer) job.compute(4ms), job.call("T", job.ids().tensor);
  }
  job.compute(10ms);
  job.call("L", job.ids().world);
}

struct Shape {
  const char* name;
  std::function<void(JitteryJob&)> iterate;
};

class IterationBorder : public testing::TestWithParam<Shape> {};

TEST_P(IterationBorder, LiesBehindTheLastCallThatComesOnce) {
  for (const Ids& ids : {Ids{1, 2, 3, 4}, Ids{4, 3, 2, 1}, Ids{2, 1, 4, 3}, Ids{3, 4, 1, 2}}) {
    for (const int slowness : {1, 20}) {  // iterations shorter and longer than a period is provisional
      JitteryJob job(ids, slowness);
      job.call("PQRSPQ", ids.world);  // set-up: parameters are spread
      const auto iterate = [&] { GetParam().iterate(job), job.border(); };
      for (int i = 0; i < 70; ++i) iterate();
      job.script().take();
      for (int i = 0; i < 40; ++i) iterate();
      const auto [exact, others] = job.count();
      EXPECT_EQ(exact, 40) << ids.world << ' ' << slowness;
      EXPECT_EQ(others, 0) << ids.world << ' ' << slowness;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, IterationBorder,
                         testing::Values(Shape{"DataParallel", dataParallel},
                                         Shape{"GradientsDuringBackward", gradientsDuringBackward},
                                         Shape{"Pipelined", pipelined}, Shape{"TensorParallel", tensorParallel}),
                         [](const auto& shape) { return shape.param.name; });

/// After other iterations, and where calls were lost, the cut is where it was.
TEST(IterationBorder, StaysWhereItIs) {
  JitteryJob job({1, 2, 3, 4});
  const auto iterate = [&] { dataParallel(job), job.border(); };
  for (int i = 0; i < 70; ++i) iterate();
  const auto pattern = job.script().take().back().pattern;
  job.script().finder().overrun(3);
  for (int i = 0; i < 30; ++i) iterate();
  for (int i = 0; i < 3; ++i) job.call("VW", job.ids().world), job.compute(100ms);  // an evaluation
  for (int i = 0; i < 30; ++i) iterate();
  const auto samples = job.script().take();
  EXPECT_GE(samples.size(), 55u);
  for (const IterationSample& sample : samples) EXPECT_EQ(sample.pattern, pattern);
}

}  // namespace
}  // namespace falcon::instrument
