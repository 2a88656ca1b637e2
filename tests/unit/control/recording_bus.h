// A bus that keeps what a member says.
#pragma once

#include <mutex>

#include "bootstrap/bus.h"
#include "control/messages.h"

namespace falcon::test {

class RecordingBus final : public bootstrap::Bus {
 public:
  bootstrap::ProcessId self() const override { return 1; }
  bootstrap::ProcessId controller() const override { return 1; }
  std::vector<bootstrap::ProcessId> members() const override { return {1}; }
  void toController(std::string bytes) override {
    auto message = control::decode(bytes);
    if (!message) throw std::logic_error("a member says nonsense");
    const std::lock_guard lock(mutex_);
    said_.push_back(std::move(*message));
  }
  void to(bootstrap::ProcessId, std::string) override {}
  void toAll(std::string) override {}
  std::vector<bootstrap::BusMessage> take(Nanoseconds) override { return {}; }
  void wake() override {}

  /// All messages of that kind since the last time.
  template <class M>
  std::vector<M> take() {
    const std::lock_guard lock(mutex_);
    std::vector<M> taken;
    std::erase_if(said_, [&](const control::Message& message) {
      const auto* wanted = std::get_if<M>(&message);
      if (wanted) taken.push_back(*wanted);
      return wanted != nullptr;
    });
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<control::Message> said_;
};

}  // namespace falcon::test
