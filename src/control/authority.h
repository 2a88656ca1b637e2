// Whose orders a process obeys.
#pragma once

#include <set>

#include "bootstrap/bus.h"
#include "control/messages.h"

namespace falcon::control {

using bootstrap::ProcessId;

/// Every process begins as its own controller; then the bus says who is. Messages and that news come in order, so what
/// was true when an order arrived decides. Used by the monitor's thread alone.
class Authority {
 public:
  enum class Word {
    obeyed,
    late,    ///< of one that was the controller, and may not know yet that it no longer is
    forged,  ///< of one that never was
  };

  explicit Authority(ProcessId self) : controller_(self) {}

  ProcessId controller() const { return controller_; }
  void changed(ProcessId controller) {
    if (controller != controller_) former_.insert(controller_);
    controller_ = controller;
  }

  /// What one has to say who hands over counts: it ends what it had begun. Whether it had begun that is the member's to
  /// know.
  Word wordOf(ProcessId from, const Message& order) const {
    if (from == controller_) return Word::obeyed;
    if (!former_.contains(from)) return Word::forged;
    const bool ends = std::holds_alternative<Decide>(order) || std::holds_alternative<SuspendAnswer>(order) ||
                      std::holds_alternative<Examined>(order);
    return ends ? Word::obeyed : Word::late;
  }

 private:
  ProcessId controller_;
  std::set<ProcessId> former_;
};

}  // namespace falcon::control
