// The network of a single rank: everything is decided at once.
#include <atomic>
#include <mutex>

#include "base/log.h"
#include "bootstrap/random.h"
#include "bootstrap/star_network.h"

namespace falcon::bootstrap {
namespace {

class AloneNetwork final : public CommunicatorNetwork {
 public:
  AloneNetwork(CommunicatorId id, const transport::Secret& secret) : id_(id), secret_(secret) {}

  CommunicatorId id() const override { return id_; }
  const transport::Secret& secret() const override { return secret_; }
  Rank rank() const override { return 0; }
  int size() const override { return 1; }

  Result<std::vector<std::string>> allGather(std::string_view mine, Nanoseconds, const GivenUp&) override {
    if (const auto broken = failure()) return *broken;
    return std::vector<std::string>{std::string(mine)};
  }

  Result<std::shared_ptr<CommunicatorNetwork>> split(int color, int, Nanoseconds, const GivenUp&) override {
    if (const auto broken = failure()) return *broken;
    const std::uint64_t number = splits_++;
    if (color < 0) return std::shared_ptr<CommunicatorNetwork>();
    return aloneNetwork(hashOf({id_, number, static_cast<std::uint64_t>(color)}), secret_);
  }

  Result<std::shared_ptr<CommunicatorNetwork>> shrink(std::span<const Rank>, Nanoseconds, const GivenUp&) override {
    return log::decided(Error::invalidArgument("a communicator of one rank cannot shrink"));
  }

  // There is no reactor to run the handler on: it runs on the thread that aborts.
  void abort(std::string_view reason) override {
    std::function<void(const Error&)> handler;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) return;
      failure_ = log::decided(Error::remote("rank 0 aborted the communicator: {}", reason));
      broken_.store(true, std::memory_order_release);
      handler.swap(handler_);
    }
    if (handler) handler(*failure_);
  }

  std::optional<Error> failure() const override {
    if (!broken_.load(std::memory_order_acquire)) [[likely]]
      return std::nullopt;
    return failure_;
  }

  bool isBroken() const override { return broken_.load(std::memory_order_acquire); }

  void onFailure(std::function<void(const Error&)> handler) override {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) return handler_.swap(handler);
    }
    if (handler) handler(*failure_);
  }

  void onDeparture(std::function<void(Rank)>) override {}  // nobody else is there

 private:
  const CommunicatorId id_;
  const transport::Secret secret_;
  std::atomic<std::uint64_t> splits_{0};
  std::atomic<bool> broken_{false};
  std::mutex mutex_;
  std::optional<Error> failure_;
  std::function<void(const Error&)> handler_;
};

}  // namespace

std::shared_ptr<CommunicatorNetwork> aloneNetwork(CommunicatorId id, const transport::Secret& secret) {
  return std::make_shared<AloneNetwork>(id, secret);
}

Result<std::shared_ptr<CommunicatorNetwork>> aloneNetwork() {
  const auto id = randomNumber();
  if (!id) return log::decided(id.error());
  const auto secret = randomSecret();
  if (!secret) return log::decided(secret.error());
  return aloneNetwork(*id, *secret);
}

}  // namespace falcon::bootstrap
