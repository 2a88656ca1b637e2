#include "inject/injection.h"

namespace falcon::tools {

void Injection::observe() {
  if (!relieved_) read(outcome_);
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

}  // namespace falcon::tools
