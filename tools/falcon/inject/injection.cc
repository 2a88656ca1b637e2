#include "inject/injection.h"

namespace falcon::tools {

Injection::Injection(Outcome outcome, Guardian guardian, FileDescriptor claim, Reader read)
    : outcome_(std::move(outcome)), read_(std::move(read)), claim_(std::move(claim)), guardian_(std::move(guardian)) {}

bool Injection::observe() {
  if (!relieved_) read_(outcome_);
  const bool slowed = effective(outcome_);
  if (slowed && outcome_.confirmed.monotonic == 0) outcome_.confirmed = momentNow();
  return slowed;
}

Outcome Injection::relieve() {
  if (relieved_) return outcome_;
  observe();
  guardian_.release();
  claim_.reset();
  outcome_.ended = momentNow();
  relieved_ = true;
  return outcome_;
}

Injection::Reader readUseAnd(std::uint64_t Outcome::*field, ProcessorUse use, const SharedCounter& count) {
  return [=](Outcome& now) {
    if (const auto cores = use.cores()) now.coresDuring = *cores;
    now.*field = *count;
  };
}

}  // namespace falcon::tools
