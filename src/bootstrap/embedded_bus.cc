// The bus that the library brings along.
#include <future>

#include "base/contained.h"
#include "base/log.h"
#include "bootstrap/bus_node.h"
#include "bootstrap/random.h"

namespace falcon::bootstrap {
namespace {

constexpr auto leaveLimit = 1s;

/// What the application holds; the node works on the reactor's thread.
class NodeBus final : public EmbeddedBus {
 public:
  explicit NodeBus(std::shared_ptr<BusNode> node) : node_(std::move(node)) {}

  // Without memory for a goodbye, the others learn it from the connections when the process ends.
  ~NodeBus() override {
    contained([this] { leave(); }, [](const char* problem) { log::info("no goodbye on the bus: {}", problem); });
  }

  ProcessId self() const override { return node_->self().id; }
  ProcessId controller() const override { return node_->controller().id; }
  std::vector<ProcessId> members() const override { return node_->members(); }
  void toController(std::string bytes) override { send(theController, std::move(bytes)); }
  void to(ProcessId process, std::string bytes) override { send(process, std::move(bytes)); }
  void toAll(std::string bytes) override { send(everyone, std::move(bytes)); }
  std::vector<BusMessage> take(Nanoseconds limit) override { return node_->inbox().take(limit); }
  void wake() override { node_->inbox().wake(); }

  BusContact contact() const override {
    const BusPeer controller = node_->controller();
    return {node_->self().id, controller.id, node_->self().address, controller.address};
  }

  void meet(const std::vector<BusContact>& members, const transport::Secret& secret) override {
    node_->reactor()->post([node = node_, members, secret] { node->meet(members, secret); });
  }

 private:
  void send(ProcessId to, std::string bytes) {
    BusFrame frame{.kind = BusFrame::Kind::text, .from = node_->self().id, .to = to, .bytes = std::move(bytes)};
    node_->reactor()->post([node = node_, frame = std::move(frame)]() mutable { node->route(std::move(frame)); });
  }

  // Waits until the goodbyes are sent: the process may end right after.
  void leave() {
    auto done = std::make_shared<std::promise<void>>();
    auto left = done->get_future();
    node_->reactor()->post([node = node_, done = std::move(done)] {
      node->leave();
      done->set_value();
    });
    if (!node_->onReactorThread()) left.wait_for(leaveLimit);
  }

  const std::shared_ptr<BusNode> node_;
};

}  // namespace

Result<std::shared_ptr<EmbeddedBus>> makeEmbeddedBus(std::shared_ptr<transport::Reactor> reactor, Rank jobRank) {
  // The upper half orders by rank, unknown ranks last; never 0 or all ones, which mean something else.
  const std::uint64_t upper = jobRank >= 0 ? static_cast<std::uint64_t>(jobRank) + 1 : 0xffffffff;
  const auto lower = randomNumber();
  if (!lower) return lower.error();
  const auto secret = randomSecret();
  if (!secret) return secret.error();
  auto node = std::make_shared<BusNode>(std::move(reactor), upper << 32 | *lower >> 33, *secret);
  node->open();
  return std::shared_ptr<EmbeddedBus>(std::make_shared<NodeBus>(std::move(node)));
}

}  // namespace falcon::bootstrap
