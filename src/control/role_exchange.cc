#include "control/role_exchange.h"

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "control/decisions.h"
#include "control/role_baselines.h"
#include "control/role_book.h"

namespace falcon::control {
namespace {

/// A network that nobody has measured: what a state is taken to move at, bytes a second. [assumed] a tenth of 10 Gbit/s
constexpr double assumedRate = 125e6;
/// Seconds beside the moving: everybody has to come, and groups are made anew. Measured: 0.05 to 0.3 s with 4 ranks.
constexpr double preparation = 1;

/// The longest iteration that is known.
double iterationSeconds(const JobView& job) {
  double longest = 0;
  for (const auto& [process, member] : job.members())
    if (!member.recent.empty()) longest = std::max(longest, member.recent.back().seconds);
  return longest;
}

}  // namespace

std::optional<double> RoleExchange::expectedSeconds() const {
  if (hasFoldersOfHosts(job_)) return std::nullopt;
  double bytes = 0, measured = 0;
  for (const auto& [process, member] : job_.members()) {
    if (!member.layout || member.layout->role < 0) return std::nullopt;
    bytes = std::max(bytes, static_cast<double>(member.layout->stateBytes));
    measured = std::max(measured, member.reshapeSeconds);
  }
  return measured > 0 ? measured : preparation + bytes / assumedRate;
}

Status RoleExchange::begin(const rebalance::Plan& plan) {
  if (plan.roles.empty()) return Error::invalidUsage("the plan does not say who takes which role");
  const Nanoseconds limit = std::max(leastAgreementLimit, fromSeconds(3 * iterationSeconds(job_)));
  outcome_.clear();
  moving_.reset();
  state_ = State::working;
  agreement_.emplace(nextId_(), Agreement::Subject{AgreementKind::roles, 0, RoleBook::encode(plan.roles, plan.avoid)},
                     job_.allProcesses(), iterationMargin, clock_, limit, outbox_);
  return {};
}

PlaceExchange::State RoleExchange::state() {
  if (agreement_ && !moving_) {
    agreement_->tick();
    if (agreement_->state() == Agreement::State::aborted) {
      agreement_.reset();
      outcome_ = "not all ranks agreed in time";
      return state_ = State::failed;
    }
    if (agreement_->state() == Agreement::State::committed)
      moving_ = Moving{.communicators = job_.communicators(), .roles = rolesOf(job_), .awaited = job_.allProcesses()};
  }
  // However long it takes: a state of hundreds of gigabytes moves for minutes, a job may be held meanwhile, and what
  // was carried out must not be taken for refused.
  if (moving_ && moving_->awaited.empty()) return state_ = conclude();
  return state_;
}

PlaceExchange::State RoleExchange::conclude() {
  const Moving moving = *std::exchange(moving_, std::nullopt);
  agreement_.reset();
  outcome_ = moving.problem;
  if (!outcome_.empty()) return State::failed;
  moveBaselines(job_, moving.communicators, moving.roles, rolesOf(job_));
  for (auto& [process, member] : job_.members()) member.reshapeSeconds = moving.seconds;
  outcome_ = fmt::format("it took {:.2f} s", moving.seconds);
  return State::done;
}

void RoleExchange::abandon() {
  if (agreement_) agreement_->abort();
  agreement_.reset();
  moving_.reset();
  state_ = State::failed;
}

void RoleExchange::handle(ProcessId from, const Counter& counter) {
  if (agreement_) agreement_->handle(from, counter);
}

void RoleExchange::handle(ProcessId from, const Vote& vote) {
  if (agreement_) agreement_->handle(from, vote);
}

void RoleExchange::handle(ProcessId from, const Reshaped& outcome) {
  if (outcome.agreement == 0 && outcome.done) firstRoles_ = rolesOf(job_);  // once all have said so, theirs
  if (agreement_ && !moving_) (void)state();                                // the last vote may have come with it
  if (!moving_ || !agreement_ || agreement_->id() != outcome.agreement || moving_->awaited.erase(from) == 0) return;
  moving_->seconds = std::max(moving_->seconds, outcome.seconds);
  if (!outcome.done && moving_->problem.empty()) moving_->problem = outcome.problem;
}

void RoleExchange::left(ProcessId process) {
  if (agreement_) agreement_->left(process);
  if (moving_) moving_->awaited.erase(process);
}

}  // namespace falcon::control
