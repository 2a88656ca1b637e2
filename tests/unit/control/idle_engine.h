// An engine for tests of what stands around one.
#pragma once

#include "base/engine.h"

namespace falcon::test {

/// `Base` is Engine or what derives from it: a communicator of one rank that moves nothing.
template <class Base>
class Idle : public Base {
 public:
  EngineKind kind() const override { return EngineKind::host; }
  CommunicatorId id() const override { return 7; }
  Rank rank() const override { return 0; }
  int size() const override { return 1; }
  int device() const override { return 0; }
  Result<std::unique_ptr<Engine>> split(int, int) override { return Error::invalidUsage("idle"); }
  Result<std::unique_ptr<Engine>> shrink(std::span<const Rank>, bool) override { return Error::invalidUsage("idle"); }
  Status revoke() override { return {}; }
  Status finalize() override { return {}; }
  void abort() override {}
  Status asyncError() const override { return {}; }
  std::uint64_t nextCollective() const override { return 0; }
};

class IdleEngine final : public Idle<Engine> {};

}  // namespace falcon::test
