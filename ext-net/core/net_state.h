// What is known of this process's connections, for whoever asks by falcon_net_state.h.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "core/congestion.h"
#include "core/network.h"
#include "falcon_net_state.h"
#include "transport/plugin/traffic_counter.h"

namespace falcon::net {

struct ConnectionIdentity {
  int device = 0;
  bool sends = false;
  int sockets = 1;
  std::string peer;
};

/// Puts what the transport knows into a reading: numbers, and their bits of `valid`. Called under the lock of the
/// state, by any thread.
using Sampler = std::function<void(falconNetConnection_v1& reading)>;

/// Of one end; lives as long as the connection.
class ConnectionRecord {
 public:
  ConnectionRecord(ConnectionIdentity identity, Sampler sampler);
  /// Afterwards the sampler is not running and will not run again.
  ~ConnectionRecord();
  ConnectionRecord(const ConnectionRecord&) = delete;
  ConnectionRecord& operator=(const ConnectionRecord&) = delete;

  transport::net::TrafficCounter& counter() { return counter_; }

 private:
  friend class NetState;
  void identify(falconNetConnection_v1& reading) const;
  void read(falconNetConnection_v1& reading) const;

  const ConnectionIdentity identity_;
  const Sampler sampler_;
  std::uint64_t id_ = 0;
  transport::net::TrafficCounter counter_;

  // Under the state's lock.
  falconNetConnection_v1 last_{};
  CongestionJudge judge_;
};

/// Thread-safe.
class NetState {
 public:
  /// Of this process and plugin.
  static NetState& instance();

  explicit NetState(const Clock& clock) : clock_(&clock) {}
  /// From now on; a test takes one reading when it wants one. `clock` is used until another takes its place.
  void setClock(const Clock& clock);

  void add(ConnectionRecord& record);
  void remove(ConnectionRecord& record);

  std::vector<falconNetConnection_v1> connections();
  std::vector<falconNetDevice_v1> devices();

 private:
  /// What an interface has sent between two readings, and what of it was ours.
  struct Sent {
    double all = 0, ours = 0;
  };
  struct DeviceTotals {
    std::uint64_t sent = 0, received = 0;  // by connections that are gone
    falconNetDevice_v1 last{};
    DeviceCounts lastCounts{};
    bool hasLast = false;
    DeviceSigns signs{};             // of the last two readings
    double ours = 0;                 // of this reading; below 0: not known of all connections
    std::vector<double> sentByEach;  // bytes, by each sending connection, in this reading
    std::size_t senders = 0;         // that are open
    double gone = 0;                 // of those that have ended since
    std::deque<Sent> sents;          // of the last readings
  };

  // With mutex_ held.
  void refresh();
  /// Those whose turn it is.
  std::vector<ConnectionRecord*> readConnections();
  void readDevices();
  void readDevice(std::size_t number, const Device& device);
  void judge(ConnectionRecord& record);
  void rate();
  /// The share of others in what the device has sent lately; below 0: not known.
  double othersOf(std::size_t device) const;
  DeviceSigns signsOf(std::size_t device) const;
  /// Connections of ours that share the device with a sending one, itself among them.
  std::size_t sharersOf(std::size_t device) const;

  std::mutex mutex_;
  const Clock* clock_;
  std::map<std::uint64_t, ConnectionRecord*> records_;
  std::vector<DeviceTotals> devices_;
  std::uint64_t lastId_ = 0;
  std::uint64_t nextToRead_ = 0;  // the id at which the next reading begins
  Nanoseconds lastReading_{0};
};

}  // namespace falcon::net
