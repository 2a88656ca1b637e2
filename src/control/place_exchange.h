// Who carries out an exchange of places between nodes (S3): what the library cannot do without the framework.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "rebalance/planner.h"

namespace falcon::control {

/// Behind it stands a framework that moves its state. Used by the controller's thread; nothing here blocks.
class PlaceExchange {
 public:
  enum class State { working, done, failed };  ///< failed: everybody goes on in the old places

  virtual ~PlaceExchange() = default;
  /// Seconds that it is expected to take; nothing: the framework has not said that it can.
  virtual std::optional<double> expectedSeconds() const = 0;
  /// Begins it. Error: it cannot, and nothing was begun.
  virtual Status begin(const rebalance::Plan& plan) = 0;
  /// Of what was begun last.
  virtual State state() = 0;
  /// How that ended, in words; "": nothing is to be said.
  virtual std::string outcome() const { return {}; }
  /// The roles to go back to once nobody is slow, by job rank; empty: each rank's own.
  virtual std::vector<int> firstRoles() const { return {}; }
  /// Everybody goes on in the old places, unless it is done.
  virtual void abandon() = 0;
};

}  // namespace falcon::control
