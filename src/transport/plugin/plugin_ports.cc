#include "transport/plugin/plugin_ports.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>

#include "transport/plugin/plugin_receive_port.h"
#include "transport/plugin/plugin_send_port.h"

namespace falcon::transport {
namespace {

class PluginPorts final : public Ports {
 public:
  PluginPorts(std::unique_ptr<Ports> base, std::shared_ptr<net::NetSession> session, CommunicatorId communicator,
              const Secret& secret, Rank self, std::vector<Peer> peers)
      : session_(std::move(session)),
        base_(std::move(base)),
        communicator_(communicator),
        secret_(secret),
        self_(self),
        peers_(std::move(peers)),
        device_(deviceOf(self_)),
        bytesSent_(peers_.size()) {}
  ~PluginPorts() override;

  Result<SendPort*> openSend(const PortKey& key) override;
  Result<ReceivePort*> openReceive(const PortKey& key) override;
  Medium mediumTo(Rank peer) const override { return base_->mediumTo(peer); }
  void left(Rank peer) override { base_->left(peer); }
  std::uint64_t bytesSentTo(Rank peer) const override {
    return base_->bytesSentTo(peer) + bytesSent_.at(static_cast<std::size_t>(peer)).load(std::memory_order_relaxed);
  }

 private:
  const Peer& infoOf(Rank peer) const { return peers_[static_cast<std::size_t>(peer)]; }
  /// Decided from what both ends know from the start, so that both decide alike.
  bool goesThroughPlugin(Rank peer) const {
    return peer >= 0 && static_cast<std::size_t>(peer) < peers_.size() && peer != self_ &&
           !mayShareMemory(infoOf(self_), infoOf(peer));
  }
  /// The ranks of a node use its devices in turn.
  int deviceOf(Rank rank) const {
    const auto before = std::count_if(peers_.begin(), peers_.begin() + rank,
                                      [&](const Peer& peer) { return peer.node == infoOf(rank).node; });
    return static_cast<int>(before) % session_->devices();
  }
  PluginLine lineTo(const PortKey& key, Rank from, Rank to) const;
  /// Connections of the base beside one through the plugin: where the receiver listens, and that the sender has begun
  /// to connect.
  static PortKey controlOf(const PortKey& key) { return {key.peer, 2 * key.channel, key.lane}; }
  static PortKey noticeOf(const PortKey& key) { return {key.peer, 2 * key.channel + 1, key.lane}; }

  // In this order: the ends use the control ports, and both may use the plugin until they are gone.
  const std::shared_ptr<net::NetSession> session_;
  const std::unique_ptr<Ports> base_;
  const CommunicatorId communicator_;
  const Secret secret_;
  const Rank self_;
  const std::vector<Peer> peers_;
  const int device_;
  const pid_t process_ = getpid();
  std::deque<std::atomic<std::uint64_t>> bytesSent_;

  std::mutex mutex_;
  std::map<PortKey, std::unique_ptr<PluginSendPort>> sends_;
  std::map<PortKey, std::unique_ptr<PluginReceivePort>> receives_;
};

PluginPorts::~PluginPorts() {
  if (getpid() == process_) return;
  // A forked child: the connections are its parent's, and so is the plugin.
  for (auto& [key, port] : sends_) static_cast<void>(port.release());
  for (auto& [key, port] : receives_) static_cast<void>(port.release());
}

PluginLine PluginPorts::lineTo(const PortKey& key, Rank from, Rank to) const {
  return {
      session_, device_, describe(key.peer, infoOf(key.peer)),
      [secret = secret_, communicator = communicator_, from, to, channel = key.channel, lane = key.lane](
          const PluginHandle& handle) { return pluginToken(secret, communicator, from, to, channel, lane, handle); }};
}

Result<SendPort*> PluginPorts::openSend(const PortKey& key) {
  if (!goesThroughPlugin(key.peer)) return base_->openSend(key);
  const auto control = base_->openReceive(controlOf(key));
  if (!control) return control.error();
  const auto notice = base_->openSend(noticeOf(key));
  if (!notice) return notice.error();
  const std::lock_guard lock(mutex_);
  auto& port = sends_[key];
  if (!port)
    port = std::make_unique<PluginSendPort>(lineTo(key, self_, key.peer), **control, **notice,
                                            bytesSent_[static_cast<std::size_t>(key.peer)]);
  return port.get();
}

Result<ReceivePort*> PluginPorts::openReceive(const PortKey& key) {
  if (!goesThroughPlugin(key.peer)) return base_->openReceive(key);
  const auto control = base_->openSend(controlOf(key));
  if (!control) return control.error();
  const auto notice = base_->openReceive(noticeOf(key));
  if (!notice) return notice.error();
  const std::lock_guard lock(mutex_);
  auto& port = receives_[key];
  if (!port) port = std::make_unique<PluginReceivePort>(lineTo(key, key.peer, self_), **control, **notice);
  return port.get();
}

}  // namespace

std::unique_ptr<Ports> makePluginPorts(std::unique_ptr<Ports> base, std::shared_ptr<net::NetSession> session,
                                       CommunicatorId communicator, const Secret& secret, Rank self,
                                       std::vector<Peer> peers) {
  return std::make_unique<PluginPorts>(std::move(base), std::move(session), communicator, secret, self,
                                       std::move(peers));
}

}  // namespace falcon::transport
