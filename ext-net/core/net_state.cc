#include "core/net_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/net_parameters.h"
#include "core/counters.h"

namespace falcon::net {
namespace {

/// Connections that one reading takes anew.
constexpr std::size_t mostReadings = 32;
/// What TCP, IP and Ethernet add to what we count, at the least segment size that is common; what is below is ours.
constexpr double headerFactor = 1.08;
/// Readings over which what others send is added up: bytes that are counted as sent may still stand in the interface's
/// queue.
constexpr std::size_t mostSents = 5;

template <std::size_t size>
void copyText(char (&to)[size], const std::string& from) {
  std::memset(to, 0, size);
  std::memcpy(to, from.data(), std::min(from.size(), size - 1));
}

}  // namespace

ConnectionRecord::ConnectionRecord(ConnectionIdentity identity, Sampler sampler)
    : identity_(std::move(identity)), sampler_(std::move(sampler)) {
  NetState::instance().add(*this);
}

ConnectionRecord::~ConnectionRecord() {
  NetState::instance().remove(*this);
}

void ConnectionRecord::identify(falconNetConnection_v1& reading) const {
  reading.id = id_;
  reading.device = static_cast<std::uint32_t>(identity_.device);
  reading.sends = identity_.sends;
  reading.sockets = identity_.sockets;
  copyText(reading.peer, identity_.peer);
}

void ConnectionRecord::read(falconNetConnection_v1& reading) const {
  const std::uint64_t sequence = reading.sequence;
  const std::int64_t taken = reading.taken;
  reading = {};
  identify(reading);
  reading.sequence = sequence;
  reading.taken = taken;
  counter_.read(reading);
  sampler_(reading);
}

NetState& NetState::instance() {
  static NetState* one = new NetState(SystemClock::instance());  // connections may outlive static objects
  return *one;
}

void NetState::setClock(const Clock& clock) {
  const std::lock_guard lock(mutex_);
  clock_ = &clock;
}

void NetState::add(ConnectionRecord& record) {
  const std::lock_guard lock(mutex_);
  record.id_ = ++lastId_;
  records_[record.id_] = &record;
  record.identify(record.last_);  // until it is its turn
}

void NetState::remove(ConnectionRecord& record) {
  const std::lock_guard lock(mutex_);
  records_.erase(record.id_);
  const auto device = static_cast<std::size_t>(record.identity_.device);
  if (devices_.size() <= device) devices_.resize(device + 1);
  auto& total = record.identity_.sends ? devices_[device].sent : devices_[device].received;
  total += record.counter_.bytes();
  // What it has sent since its last reading is ours as well.
  falconNetConnection_v1 end{};
  record.sampler_(end);
  if (end.valid & FALCON_NET_WIRE_BYTES) devices_[device].gone += grown(end.wireBytes, record.last_.wireBytes);
}

std::vector<falconNetConnection_v1> NetState::connections() {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<falconNetConnection_v1> all;
  all.reserve(records_.size());
  for (const auto& [id, record] : records_) all.push_back(record->last_);
  return all;
}

std::vector<falconNetDevice_v1> NetState::devices() {
  const std::lock_guard lock(mutex_);
  refresh();
  std::vector<falconNetDevice_v1> all;
  for (const DeviceTotals& device : devices_)
    if (device.hasLast) all.push_back(device.last);
  return all;
}

void NetState::refresh() {
  const Nanoseconds now = clock_->now();
  if (lastReading_ != Nanoseconds(0) && now - lastReading_ < parameters::netStateInterval.value()) return;
  lastReading_ = now;
  const std::vector<ConnectionRecord*> taken = readConnections();
  readDevices();
  for (ConnectionRecord* record : taken) judge(*record);
  rate();
}

std::vector<ConnectionRecord*> NetState::readConnections() {
  std::vector<ConnectionRecord*> taken;
  for (DeviceTotals& device : devices_) {
    const double gone = std::exchange(device.gone, 0);
    device.ours = records_.size() <= mostReadings ? gone : -1;
    device.sentByEach.clear();
    device.senders = 0;
  }
  for (const auto& [id, record] : records_)
    if (const auto device = static_cast<std::size_t>(record->identity_.device);
        record->identity_.sends && device < devices_.size())
      ++devices_[device].senders;
  auto next = records_.lower_bound(nextToRead_);
  for (std::size_t count = std::min(mostReadings, records_.size()); count > 0; --count, ++next) {
    if (next == records_.end()) next = records_.begin();
    ConnectionRecord& record = *next->second;
    const std::uint64_t before = record.last_.wireBytes;
    record.last_.taken = lastReading_.count();
    ++record.last_.sequence;
    record.read(record.last_);
    taken.push_back(&record);
    const auto device = static_cast<std::size_t>(record.identity_.device);
    if (device >= devices_.size() || devices_[device].ours < 0) continue;
    if (!(record.last_.valid & FALCON_NET_WIRE_BYTES))
      devices_[device].ours = -1;
    else
      devices_[device].ours += grown(record.last_.wireBytes, before);
    if (record.identity_.sends) devices_[device].sentByEach.push_back(grown(record.last_.wireBytes, before));
  }
  nextToRead_ = next == records_.end() ? 0 : next->first;
  return taken;
}

void NetState::readDevices() {
  const auto known = network().devices();
  if (!known) return;
  if (devices_.size() < known->size()) devices_.resize(known->size());
  for (std::size_t number = 0; number < known->size(); ++number) readDevice(number, (*known)[number]);
}

void NetState::readDevice(std::size_t number, const Device& device) {
  DeviceTotals& totals = devices_[number];
  falconNetDevice_v1 reading{};
  copyText(reading.name, device.name);
  reading.speed = device.speed;
  reading.sequence = totals.last.sequence + 1;
  reading.taken = lastReading_.count();
  reading.bytesSent = totals.sent;
  reading.bytesReceived = totals.received;
  for (const auto& [id, record] : records_) {
    if (static_cast<std::size_t>(record->identity_.device) != number) continue;
    ++reading.connections;
    (record->identity_.sends ? reading.bytesSent : reading.bytesReceived) += record->counter_.bytes();
  }
  DeviceCounts counts;
  network().sample(static_cast<int>(number), reading, counts);
  if (totals.hasLast) totals.signs = net::signsOf({totals.last, totals.lastCounts}, {reading, counts});
  if (!totals.hasLast || !(reading.valid & totals.last.valid & FALCON_NET_INTERFACE) || totals.ours < 0) {
    totals.sents.clear();
  } else {
    totals.sents.push_back({grown(reading.interfaceBytes, totals.last.interfaceBytes), totals.ours});
    if (totals.sents.size() > mostSents) totals.sents.pop_front();
  }
  totals.last = reading;
  totals.lastCounts = counts;
  totals.hasLast = true;
}

double NetState::othersOf(std::size_t device) const {
  if (device >= devices_.size() || devices_[device].sents.empty()) return -1;
  double all = 0, ours = 0;
  for (const Sent& sent : devices_[device].sents) all += sent.all, ours += sent.ours * headerFactor;
  return all > 0 ? std::clamp((all - ours) / all, 0.0, 1.0) : 0;
}

DeviceSigns NetState::signsOf(std::size_t device) const {
  return device < devices_.size() ? devices_[device].signs : DeviceSigns();
}

std::size_t NetState::sharersOf(std::size_t device) const {
  if (device >= devices_.size()) return 0;
  const DeviceTotals& totals = devices_[device];
  if (totals.ours < 0) return totals.senders;  // not all were read
  double all = 0;
  for (const double bytes : totals.sentByEach) all += bytes;
  // Who sends a trickle takes nothing from the others.
  const double least = all / (4 * static_cast<double>(std::max<std::size_t>(totals.sentByEach.size(), 1)));
  const auto share = [&](double bytes) { return bytes > 0 && bytes >= least; };
  return std::max<std::size_t>(
      1, static_cast<std::size_t>(std::count_if(totals.sentByEach.begin(), totals.sentByEach.end(), share)));
}

void NetState::judge(ConnectionRecord& record) {
  if (!record.identity_.sends) return;
  const auto device = static_cast<std::size_t>(record.identity_.device);
  const OnTheInterface beside{othersOf(device), sharersOf(device)};
  const Congestion judged = record.judge_.judge(record.last_, beside, signsOf(device));
  record.last_.condition = judged.condition;
  record.last_.score = judged.score;
  if (judged.condition != falconNetUnknown) record.last_.valid |= FALCON_NET_SCORE;
}

void NetState::rate() {
  for (DeviceTotals& device : devices_) {
    device.last.condition = falconNetUnknown;
    device.last.score = 0;
    device.last.valid &= ~FALCON_NET_SCORE;
  }
  for (const auto& [id, record] : records_) {
    const falconNetConnection_v1& its = record->last_;
    if (its.device >= devices_.size()) continue;
    falconNetDevice_v1& device = devices_[its.device].last;
    if (!(its.valid & FALCON_NET_SCORE) || its.score < device.score) continue;
    device.score = its.score;
    device.condition = its.condition;
    device.valid |= FALCON_NET_SCORE;
  }
}

}  // namespace falcon::net
