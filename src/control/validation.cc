#include "control/validation.h"

#include <algorithm>

#include "base/format.h"
#include "base/log.h"
#include "control/closing.h"
#include "control/tested_groups.h"
#include "control/validation_tests.h"
#include "validate/test_time.h"
#include "validate/wave_queue.h"

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
        deadline_(started_ + input.limit),
        closing_({input.id, seconds(input.limit), false}, job, outbox),
        queue_(sitesOf(job), validate::LinkPlanOptions().endsPerHost, input.id + 1) {}

  void handle(ProcessId from, const Message& message) override {
    if (finished()) return;
    if (step_ == Step::closing) {
      closing_.handle(from, message);
      if (closing_.isDone()) advance();
      return;
    }
    if (const auto* score = std::get_if<ComputeResult>(&message); score && score->trap == input_.id) {
      tests_.compute[from] = *score;
      if (step_ == Step::computing) waiting_.erase(from);
    } else if (const auto* results = std::get_if<LinkResults>(&message);
               results && step_ == Step::links && results->wave == wave_) {
      waiting_.erase(from);
      if (auto measurements = validate::decodeMeasurements(results->measurements))
        ofWave_.insert(ofWave_.end(), measurements->begin(), measurements->end());
    }
    if (waiting_.empty()) advance();
  }

  void left(ProcessId process, bool died) override {
    waiting_.erase(process);
    someoneDied_ |= died;
    if (!finished()) finish("a rank left the job during the validation");
  }

  void tick() override {
    if (finished()) return;
    const Nanoseconds now = clock_.now();
    if (step_ == Step::closing && now > std::min(deadline_, started_ + input_.entryLimit)) {
      outcome_.trapTimedOut = true;
      return finish("not every rank was held in time: " + closing_.whatIsMissing());
    }
    if (step_ == Step::closing) closing_.tick();
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
        held_ = clock_.now();
        outcome_.closingSeconds = seconds(held_ - started_);
        return startCompute();
      case Step::computing:
        outcome_.verdict = diagnose::judge(measurementsOf(job_, input_, tests_));
        // Compute verdicts come first and explain links away. But a slow rank slows no group in all its members: where
        // one is suspected beside it, there may be a slow link too.
        if (outcome_.verdict.certain && namesSomebodyNew(outcome_.verdict) && input_.suspects.groups.empty())
          return finish("");
        queueLinks();
        return nextWave();
      case Step::links:
        time_.took(clock_.now() - waveStarted_);
        queue_.learn(ofWave_);
        keepMeasurements();
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

  void keepMeasurements() {
    tests_.links.insert(tests_.links.end(), ofWave_.begin(), ofWave_.end());
    ofWave_.clear();
  }

  /// What the groups' collectives use, and other pairs as far as there is time: first those that had to wait before.
  void queueLinks() {
    std::vector<validate::TestedGroup> groups = testedGroups(job_, input_.suspects);
    // Who asks for an examination wants to know of links that nobody waits for, too.
    if (!input_.wantsExamination) tests_.use = linkUseOf(job_, groups, input_.window);
    std::vector<validate::WaveLink> others = validate::linksOf(groups);
    for (validate::TestedGroup& group : groups) group.pairs.clear();
    const std::vector<validate::WaveLink> used = validate::linksOf(groups);
    std::set<Link> known;
    for (const validate::WaveLink& link : used) known.insert(link.link);
    std::erase_if(others, [&](const validate::WaveLink& link) { return !known.insert(link.link).second; });
    std::stable_partition(others.begin(), others.end(),
                          [&](const validate::WaveLink& link) { return input_.waiting.contains(link.link); });
    queue_.add(used);
    queue_.addInRounds(others);
  }

  std::vector<validate::WaveLink> doubtful() const {
    return diagnose::linksToConfirm(measurementsOf(job_, input_, tests_), queue_.waves());
  }

  /// They are the other directions of links that are named already.
  bool areBacksOfNamed(const std::vector<validate::WaveLink>& links) const {
    const Verdict verdict = diagnose::judge(measurementsOf(job_, input_, tests_));
    return std::all_of(links.begin(), links.end(), [&](const validate::WaveLink& each) {
      const Culprit link{.kind = CulpritKind::link, .link = each.link};  // whichever way
      return std::any_of(verdict.culprits.begin(), verdict.culprits.end(),
                         [&](const Culprit& named) { return isSameCulprit(named, link); });
    });
  }

  bool hasTimeForMore() const {
    return time_.allowsMore(clock_.now() - held_, validate::passesOf(doubtful(), sitesOf(job_)).size());
  }

  void nextWave() {
    if (queue_.nextIsIfTime() && !hasTimeForMore()) outcome_.leftOut = queue_.leaveOut();
    auto wave = queue_.next();
    if (!wave) {
      // What looks slow is measured again before it is named.
      const std::vector<validate::WaveLink> again = doubtful();
      if (!areBacksOfNamed(again) || time_.allowsOther(clock_.now() - held_)) queue_.addAgain(again);
      wave = queue_.next();
    }
    if (!wave) return finish("");
    step_ = Step::links;
    waveStarted_ = clock_.now();
    stepDeadline_ = waveStarted_ + wavePatience;
    wave_ = wave->run;
    waiting_.clear();
    for (const validate::WaveLink& link : wave->links)
      for (const Rank rank : {link.link.from, link.link.to})
        if (const auto process = job_.processOf(rank)) waiting_.insert(*process);
    const std::set<ProcessId> ends = waiting_;
    for (const ProcessId process : ends) outbox_.to(process, RunWave{wave->run, false, validate::encode(*wave)});
    if (ends.empty()) advance();
  }

  void finish(const std::string& problem) {
    step_ = Step::done;
    outbox_.toAll(OpenTrap{input_.id, someoneDied_});
    outcome_.trapSeconds = seconds(clock_.now() - started_);
    keepMeasurements();
    if (!problem.empty()) {
      outcome_.verdict = {.evidence = problem};
      return;
    }
    const diagnose::Measurements measured = measurementsOf(job_, input_, tests_);
    const diagnose::Judgement judgement = diagnose::judgementOf(measured);
    outcome_.verdict = diagnose::verdictOf(judgement, measured);
    outcome_.lookSlow = judgement.lookSlow;
    if (!outcome_.leftOut.empty() && !outcome_.verdict.certain)
      outcome_.verdict.evidence +=
          fmt::format("; {} links that carry less wait for another look", outcome_.leftOut.size());
    if (input_.wantsExamination)
      outcome_.examination = validate::encode(examinationOf(job_, input_, tests_, outcome_.trapSeconds));
    for (const validate::LinkMeasurement& link : tests_.links)
      if (link.status == validate::LinkStatus::measured)
        outcome_.linkRates[link.link] = {link.bytesPerSecond(), link.medium};
  }

  const ValidationInput input_;
  const JobView& job_;
  const Clock& clock_;
  Outbox& outbox_;
  const Nanoseconds started_;
  const Nanoseconds deadline_;
  Closing closing_;
  Nanoseconds held_{0}, waveStarted_{0};
  Nanoseconds stepDeadline_{0};
  Step step_ = Step::closing;
  bool someoneDied_ = false;
  std::set<ProcessId> waiting_;  ///< who has not answered in this step
  ValidationTests tests_;
  validate::WaveQueue queue_;
  validate::TestTime time_;
  std::vector<validate::LinkMeasurement> ofWave_;  ///< that have come of the wave that runs
  std::uint64_t wave_ = 0;
  Outcome outcome_;
};

}  // namespace

std::unique_ptr<Validation> startValidation(const ValidationInput& input, const JobView& job, const Clock& clock,
                                            Outbox& outbox) {
  return std::make_unique<LiveValidation>(input, job, clock, outbox);
}

}  // namespace falcon::control
