// A running `falcon inject`, seen from outside.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "injections/slow_job.h"

namespace falcon::injections {

/// Slows from its making to its end or destruction.
class Victim {
 public:
  /// @param number  unlike that of any other that is running
  Victim(const SlowJob& job, const demo::Injection& injection, std::size_t number);

  bool isSlowed() const;
  bool ended() { return process_.exitCode().has_value(); }
  std::string errors() const { return demo::readFile(output_ + ".err"); }

  void end() { process_.terminate(); }
  /// Its report, once it has ended: {"confirmed": ..., "ended": ...}.
  nlohmann::json report();

 private:
  std::string output_;
  demo::ChildProcess process_;
};

}  // namespace falcon::injections
