// A member whose clock, bus and communicators are the test's.
#pragma once

#include <gtest/gtest.h>

#include "control/member.h"
#include "unit/control/recording_bus.h"

namespace falcon::test {

class NoBenchmark final : public validate::ComputeBenchmark {
  Result<validate::ComputeScore> run(Nanoseconds) override { return Error::internal("not in this test"); }
};

struct AMember : testing::Test {
  static constexpr std::uint32_t capacity = 1 << 15;  // of the call log

  RecordingBus bus;
  ManualClock clock;
  std::unique_ptr<instrument::CallLog> log =
      std::move(*instrument::CallLog::create("", {"job", "host", 0, 1}, capacity));
  control::Trap trap{clock};
  control::TransferSums transfers;
  control::CommunicatorTable communicators;
  control::PlanBook plans;
  control::RestartBook restarts;
  control::DecisionBook decisions;
  NoBenchmark benchmark;
  std::atomic<bool> stopping{false};
  control::Member member{{bus, clock, *log, trap, transfers, communicators, plans, decisions, benchmark, nullptr,
                          nullptr, nullptr, &stopping, &restarts},
                         {}};
};

}  // namespace falcon::test
