// A rank's part in a communicator, for tests of who looks on.
#pragma once

#include "base/membership.h"

namespace falcon::test {

/// `Base` is Membership or what derives from it: a communicator of one rank that moves nothing.
template <class Base>
class Idle : public Base {
 public:
  EngineKind kind() const override { return EngineKind::host; }
  CommunicatorId id() const override { return 7; }
  Rank rank() const override { return 0; }
  int size() const override { return 1; }
  int device() const override { return 0; }
  std::uint64_t nextCollective() const override { return 0; }
  Status abort() override { return {}; }
};

class IdleMembership final : public Idle<Membership> {};

}  // namespace falcon::test
