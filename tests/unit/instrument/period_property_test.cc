// Generated jobs with a known period: nested loops, several communicators, threads, occasional steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/format.h"
#include "harness/thoroughness.h"
#include "instrument/call_hash.h"
#include "instrument/period_finder.h"
#include "unit/instrument/call_script.h"

namespace falcon::instrument {
namespace {

using Random = std::mt19937_64;
using Calls = std::vector<CallRecord>;

/// A call of one of `kinds` kinds on a communicator.
CallRecord randomCall(Random& random, CommunicatorId communicator, unsigned kinds) {
  CallRecord record;
  const auto kind = random() % kinds;
  record.communicator = communicator;
  record.operation = kind % 3 == 2 ? Operation::send : Operation::allReduce;
  record.peer = kind % 3 == 2 ? static_cast<Rank>(kind) : -1;
  record.count = 1000 + 17 * kind;
  return record;
}

/// A body of calls and loops, as deep as `depth`, of about `size` calls.
Calls randomProgram(Random& random, int depth, std::size_t size, unsigned communicators, unsigned kinds) {
  Calls calls;
  while (calls.size() < size) {
    if (depth == 0 || random() % 3 == 0) {
      calls.push_back(randomCall(random, 1 + random() % communicators, kinds));
      continue;
    }
    const Calls body = randomProgram(random, depth - 1, 1 + random() % (size / 4 + 1), communicators, kinds);
    for (std::size_t times = 2 + random() % 8; times > 0 && calls.size() < size; --times)
      calls.insert(calls.end(), body.begin(), body.end());
  }
  return calls;
}

/// The smallest period of the endless repeat of `calls`, by brute force.
std::size_t truePeriod(const Calls& calls) {
  const std::size_t size = calls.size();
  for (std::size_t period = 1; period < size; ++period) {
    if (size % period != 0) continue;
    bool repeats = true;
    for (std::size_t i = 0; i < size && repeats; ++i)
      repeats = callHash(calls[i]) == callHash(calls[(i + period) % size]);
    if (repeats) return period;
  }
  return size;
}

std::size_t callsOf(const IterationSample& sample) {
  std::size_t calls = 0;
  for (const CommunicatorShare& share : sample.communicators) calls += share.calls;
  return calls;
}

std::string textOf(const Calls& calls) {
  std::string text;
  for (const CallRecord& call : calls) text += fmt::format("{}:{} ", call.communicator, call.count);
  return text;
}

/// Iterations that take longer than any provisional time, of the same length each, whatever calls they have.
class Job {
 public:
  explicit Job(const PeriodOptions& options = {}) : script_(options) {}
  void iterate(const Calls& calls) {
    const Nanoseconds start = script_.now();
    for (const CallRecord& call : calls) script_.play(call, 10us, 20us);
    script_.wait(iterationTime - (script_.now() - start));
  }
  void step(const Calls& calls) {
    for (const CallRecord& call : calls) script_.play(call, 10us, 20us);
  }
  CallScript& script() { return script_; }
  static constexpr Nanoseconds iterationTime = 1s;

 private:
  CallScript script_;
};

class GeneratedJobs : public testing::TestWithParam<int> {
 protected:
  Random random_{static_cast<std::uint64_t>(GetParam())};
};

TEST_P(GeneratedJobs, HaveTheirExactPeriodAfterThreeIterations) {
  std::vector<std::string> mistaken;
  for (int round = 0; round < 40; ++round) {
    const unsigned communicators = 1 + random_() % 4;
    Calls calls = randomProgram(random_, static_cast<int>(random_() % 4), 1 + random_() % 400, communicators, 9);
    // Without the gradients, ten times something and a small rest might as well be ten iterations and their log.
    CallRecord gradients = randomCall(random_, 1 + random_() % communicators, 1);
    gradients.count = 10'000'000;
    calls.insert(calls.begin() + static_cast<std::ptrdiff_t>(random_() % (calls.size() + 1)), gradients);
    calls.resize(truePeriod(calls));
    Job job;
    job.step(randomProgram(random_, 1, random_() % 50, communicators, 9));  // what comes before the loop
    // One more than three: the first may be cut by what came before it, and by where in it the anchor lies.
    for (int i = 0; i < 4; ++i) job.iterate(calls);
    EXPECT_NE(job.script().finder().period(), 0u) << round;
    for (int i = 0; i < 26; ++i) job.iterate(calls);
    job.script().take();
    for (int i = 0; i < 8; ++i) job.iterate(calls);
    const auto samples = job.script().take();
    const bool right = samples.size() == 8 && std::all_of(samples.begin(), samples.end(), [&](const auto& sample) {
                         return callsOf(sample) == calls.size() && sample.duration == Job::iterationTime &&
                                !sample.extraCalls && !sample.provisional;
                       });
    if (!right || job.script().finder().period() != calls.size()) mistaken.push_back(textOf(calls));
  }
  // Of 4000 programs two, with several loops of one call each, were taken for a loop with irregular steps between.
  EXPECT_LE(mistaken.size(), 1u) << testing::PrintToString(mistaken);
}

/// Several threads, each with communicators of its own, meet at the end of every iteration only.
TEST_P(GeneratedJobs, OfThreadsInAnyOrderKeepTheirPeriod) {
  for (int round = 0; round < 10; ++round) {
    std::vector<Calls> threads(2 + random_() % 3);
    CommunicatorId next = 1;
    std::size_t total = 0;
    for (Calls& thread : threads) {
      const unsigned communicators = 1 + random_() % 2;
      thread = randomProgram(random_, 2, 20 + random_() % 60, communicators, 7);
      for (CallRecord& call : thread) call.communicator += next;
      next += communicators;
      thread.push_back(randomCall(random_, next, 1));  // its own end of the iteration
      ++next;
      total += thread.size();
    }
    Job job;
    const auto iterate = [&] {
      std::vector<std::size_t> at(threads.size(), 0);
      Calls mixed;
      while (mixed.size() < total) {
        const std::size_t thread = random_() % threads.size();
        if (at[thread] < threads[thread].size()) mixed.push_back(threads[thread][at[thread]++]);
      }
      job.iterate(mixed);
    };
    for (int i = 0; i < 40; ++i) iterate();
    job.script().take();
    for (int i = 0; i < 60; ++i) iterate();
    const auto samples = job.script().take();
    ASSERT_EQ(samples.size(), 60u) << round;
    Nanoseconds sum{0};
    int extras = 0;
    for (const IterationSample& sample : samples) {
      sum += sample.duration;
      extras += sample.extraCalls;
      EXPECT_FALSE(sample.provisional) << round;
      EXPECT_EQ(sample.pattern, samples.front().pattern) << round;
      EXPECT_NEAR(seconds(sample.duration), 1, 0.01) << round;  // an iteration's calls span that much at most
    }
    EXPECT_LE(extras, 15) << round;  // after several that happened to have the same number of calls
    EXPECT_NEAR(seconds(sum), 60, 0.02) << round;
    EXPECT_NEAR(static_cast<double>(job.script().finder().period()), static_cast<double>(total), 5) << round;
    if (HasFailure()) return;
  }
}

/// Logs, evaluations and checkpoints every so many iterations, all at once.
TEST_P(GeneratedJobs, KeepTheirPeriodWithOccasionalSteps) {
  constexpr int intervals[] = {10, 20, 50, 100, 200, 500};
  std::vector<std::string> mistaken;
  for (int round = 0; round < 10; ++round) {
    Calls calls = randomProgram(random_, 2, 12 + random_() % 60, 1 + random_() % 3, 9);
    CallRecord gradients = randomCall(random_, 1, 1);  // every iteration ends with the gradients' sum
    gradients.count = 100'000;
    calls.push_back(gradients);
    const int logEvery = intervals[random_() % 3], evaluateEvery = intervals[2 + random_() % 4];
    CallRecord log = randomCall(random_, 1 + random_() % 3, 1);
    log.count = 3;
    CallRecord metrics = randomCall(random_, 1, 1);
    metrics.count = 7;
    const int evaluation = 1 + static_cast<int>(random_() % 40);
    const std::string description = fmt::format("log every {} on {}, evaluation every {} of {} calls, {}", logEvery,
                                                log.communicator, evaluateEvery, evaluation, textOf(calls));
    Job job;
    std::map<std::uint64_t, std::size_t> patterns;
    int judged = 0, wrong = 0, extras = 0;
    for (int i = 1; i <= 600; ++i) {
      job.iterate(calls);
      if (i % logEvery == 0) job.step({log});
      if (i % evaluateEvery == 0) job.step(Calls(static_cast<std::size_t>(evaluation), metrics));
      for (const IterationSample& sample : job.script().take()) {
        if (i <= 150 || sample.provisional) continue;  // the third evaluation says what it is
        ++judged;
        ++patterns[sample.pattern];
        extras += sample.extraCalls;
        wrong += !sample.extraCalls && callsOf(sample) != calls.size() && callsOf(sample) != calls.size() + 1;
        wrong += sample.duration > 2 * Job::iterationTime;
      }
    }
    const bool right =
        wrong == 0 && judged > 250 && patterns.size() == 1 && extras <= 600 / logEvery + 600 / evaluateEvery;
    if (!right) mistaken.push_back(description);
  }
  // What such a step is cannot be known: a few that look like the end of a loop are taken for one.
  EXPECT_LE(mistaken.size(), 1u) << testing::PrintToString(mistaken);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GeneratedJobs, testing::Range(1, 1 + test::samples(30)));

}  // namespace
}  // namespace falcon::instrument
