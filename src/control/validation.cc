#include "control/validation.h"

#include <algorithm>

#include "base/log.h"
#include "control/validation_tests.h"
#include "validate/link_plan.h"

namespace falcon::control {
namespace {

constexpr Nanoseconds computePatience = 4s;
constexpr Nanoseconds wavePatience = 6s;

class LiveValidation final : public Validation {
 public:
  LiveValidation(const ValidationInput& input, const JobView& job, const Clock& clock, Outbox& outbox)
      : input_(input),
        job_(job),
        clock_(clock),
        outbox_(outbox),
        started_(clock.now()),
        deadline_(started_ + input.limit) {
    nextRun_ = input.id + 1;
    waiting_ = job.allProcesses();
    outbox_.toAll(CloseTrap{input_.id, seconds(input_.limit)});
  }

  void handle(ProcessId from, const Message& message) override {
    if (finished()) return;
    if (const auto* state = std::get_if<TrapState>(&message);
        state && step_ == Step::closing && state->trap == input_.id) {
      if (state->held) waiting_.erase(from);
    } else if (const auto* score = std::get_if<ComputeResult>(&message); score && score->trap == input_.id) {
      tests_.compute[from] = *score;
      if (step_ == Step::computing) waiting_.erase(from);
    } else if (const auto* results = std::get_if<LinkResults>(&message);
               results && step_ == Step::links && results->wave == wave_) {
      waiting_.erase(from);
      if (auto measurements = validate::decodeMeasurements(results->measurements))
        tests_.links.insert(tests_.links.end(), measurements->begin(), measurements->end());
    }
    if (waiting_.empty()) advance();
  }

  void left(ProcessId process) override {
    waiting_.erase(process);
    if (!finished()) finish("a rank left the job during the validation");
  }

  void tick() override {
    if (finished()) return;
    const Nanoseconds now = clock_.now();
    if (step_ == Step::closing && now > deadline_) {
      outcome_.trapTimedOut = true;
      return finish("not every rank came into the library in time");
    }
    if (now > deadline_) return finish("");
    // A rank that does not answer is not slow: what the others measured decides.
    if (step_ != Step::closing && now > stepDeadline_) {
      waiting_.clear();
      advance();
    }
  }

  void abandon() override {
    if (!finished()) finish("the validation was given up");
  }

  bool finished() const override { return step_ == Step::done; }
  const Outcome& outcome() const override { return outcome_; }

 private:
  enum class Step { closing, computing, links, done };

  void advance() {
    switch (step_) {
      case Step::closing:
        outcome_.closingSeconds = seconds(clock_.now() - started_);
        return startCompute();
      case Step::computing:
        outcome_.verdict = validate::judge(verdictInput(job_, input_, tests_));
        // Compute verdicts come first and explain links away.
        if (outcome_.verdict.certain && namesSomebodyNew(outcome_.verdict)) return finish("");
        plan(validate::planLinkTests(testedGroups(job_, input_.suspects), placesOf(job_), {}, nextRun_));
        return nextWave();
      case Step::links:
        return nextWave();
      case Step::done:
        return;
    }
  }

  bool namesSomebodyNew(const Verdict& verdict) const {
    const auto isKnown = [&](const Culprit& culprit) {
      return std::any_of(input_.known.begin(), input_.known.end(),
                         [&](const Culprit& each) { return isSameCulprit(each, culprit); });
    };
    return !std::all_of(verdict.culprits.begin(), verdict.culprits.end(), isKnown);
  }

  void startCompute() {
    step_ = Step::computing;
    stepDeadline_ = clock_.now() + computePatience;
    waiting_ = computeTargets(job_, input_.suspects);
    const std::set<ProcessId> targets = waiting_;
    for (const ProcessId process : targets) outbox_.to(process, RunCompute{input_.id, computeSpanSeconds});
    if (targets.empty()) advance();
  }

  void plan(std::vector<validate::Wave> waves) {
    nextRun_ += waves.size();
    waves_.insert(waves_.end(), std::make_move_iterator(waves.begin()), std::make_move_iterator(waves.end()));
  }

  // What looks slow is measured again before it is named.
  void confirm() {
    const auto doubtful = validate::linksToConfirm(verdictInput(job_, input_, tests_), waves_);
    plan(validate::planWaves(doubtful, placesOf(job_), {}, transport::Lane::test, nextRun_));
  }

  void nextWave() {
    if (waveIndex_ == waves_.size()) confirm();
    if (waveIndex_ == waves_.size()) return finish("");
    step_ = Step::links;
    stepDeadline_ = clock_.now() + wavePatience;
    const validate::Wave& wave = waves_[waveIndex_++];
    wave_ = wave.run;
    waiting_.clear();
    for (const validate::WaveLink& link : wave.links)
      for (const Rank rank : {link.link.from, link.link.to})
        if (const auto process = job_.processOf(rank)) waiting_.insert(*process);
    const std::set<ProcessId> ends = waiting_;
    for (const ProcessId process : ends) outbox_.to(process, RunWave{wave.run, false, validate::encode(wave)});
    if (ends.empty()) advance();
  }

  void finish(const std::string& problem) {
    step_ = Step::done;
    outbox_.toAll(OpenTrap{input_.id});
    outcome_.trapSeconds = seconds(clock_.now() - started_);
    if (!problem.empty()) {
      outcome_.verdict = {.evidence = problem};
      return;
    }
    outcome_.verdict = validate::judge(verdictInput(job_, input_, tests_));
    for (const validate::LinkMeasurement& link : tests_.links)
      if (link.status == validate::LinkStatus::measured) outcome_.linkRates[link.link] = link.bytesPerSecond();
  }

  const ValidationInput input_;
  const JobView& job_;
  const Clock& clock_;
  Outbox& outbox_;
  const Nanoseconds started_;
  const Nanoseconds deadline_;
  Nanoseconds stepDeadline_{0};
  Step step_ = Step::closing;
  std::set<ProcessId> waiting_;  ///< who has not answered in this step
  ValidationTests tests_;
  std::vector<validate::Wave> waves_;
  std::size_t waveIndex_ = 0;
  std::uint64_t nextRun_ = 0;
  std::uint64_t wave_ = 0;
  Outcome outcome_;
};

}  // namespace

std::unique_ptr<Validation> startValidation(const ValidationInput& input, const JobView& job, const Clock& clock,
                                            Outbox& outbox) {
  return std::make_unique<LiveValidation>(input, job, clock, outbox);
}

}  // namespace falcon::control
