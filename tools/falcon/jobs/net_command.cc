#include "jobs/net_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "jobs/job_files.h"
#include "json_text.h"
#include "print.h"

namespace falcon::jobs {
namespace {

using json = nlohmann::json;

/// Of each device so many are shown: those with the highest scores.
constexpr std::size_t mostRows = 8;

json fieldOr(std::uint32_t valid, std::uint32_t bit, const json& value) {
  return valid & bit ? value : json();
}

json toJson(const falconNetConnection_v1& its) {
  return {{"id", its.id},
          {"device", its.device},
          {"peer", its.peer},
          {"sends", its.sends != 0},
          {"sockets", its.sockets},
          {"condition", conditionName(its.condition)},
          {"score", fieldOr(its.valid, FALCON_NET_SCORE, its.score)},
          {"bytes", its.bytes},
          {"messages", its.messages},
          {"bytes_in_flight", its.bytesInFlight},
          {"send_wait_s", fieldOr(its.valid, FALCON_NET_SEND_WAIT, static_cast<double>(its.sendWaitNanoseconds) / 1e9)},
          {"rtt_s", fieldOr(its.valid, FALCON_NET_RTT, static_cast<double>(its.rttNanoseconds) / 1e9)},
          {"rtt_least_s", fieldOr(its.valid, FALCON_NET_RTT, static_cast<double>(its.rttLeastNanoseconds) / 1e9)},
          {"retransmits", fieldOr(its.valid, FALCON_NET_RETRANSMITS, its.retransmits)},
          {"segments", fieldOr(its.valid, FALCON_NET_RETRANSMITS, its.segments)},
          {"ecn_marked", fieldOr(its.valid, FALCON_NET_ECN, its.ecnMarked)},
          {"delivery_rate", fieldOr(its.valid, FALCON_NET_DELIVERY_RATE, its.deliveryRate)}};
}

json toJson(const falconNetDevice_v1& its) {
  return {{"name", its.name},
          {"condition", conditionName(its.condition)},
          {"score", fieldOr(its.valid, FALCON_NET_SCORE, its.score)},
          {"connections", its.connections},
          {"speed_mbit", its.speed},
          {"bytes_sent", its.bytesSent},
          {"bytes_received", its.bytesReceived},
          {"congestion_notifications", fieldOr(its.valid, FALCON_NET_CNP, its.congestionNotifications)},
          {"out_of_sequence", fieldOr(its.valid, FALCON_NET_OUT_OF_SEQUENCE, its.outOfSequence)},
          {"naks", fieldOr(its.valid, FALCON_NET_NAKS, its.negativeAcknowledgements)},
          {"pause_frames", fieldOr(its.valid, FALCON_NET_PAUSE, its.pauseFrames)},
          {"transmit_wait", fieldOr(its.valid, FALCON_NET_TRANSMIT_WAIT, its.transmitWait)}};
}

json toJson(const RankFile& rank, const transport::net::NetSnapshot& net) {
  json devices = json::array(), connections = json::array();
  for (const auto& device : net.devices) devices.push_back(toJson(device));
  for (const auto& connection : net.connections) connections.push_back(toJson(connection));
  return {{"rank", rank.view.identity.jobRank},
          {"host", rank.view.identity.host},
          {"plugin", net.plugin},
          {"devices", devices},
          {"connections", connections}};
}

std::string scoreText(std::uint32_t valid, double score) {
  return valid & FALCON_NET_SCORE ? fmt::format("{:.2f}", score) : "-";
}

void print(const falconNetConnection_v1& its) {
  tools::print(
      stdout, "        to {:<24} {:<10} {:>5}  {:>9.1f} MB  {:>8} MB/s  rtt {:>8} of {:>8}  again {}\n", its.peer,
      conditionName(its.condition), scoreText(its.valid, its.score), static_cast<double>(its.bytes) / 1e6,
      its.valid & FALCON_NET_DELIVERY_RATE ? fmt::format("{:.1f}", static_cast<double>(its.deliveryRate) / 1e6) : "-",
      its.valid & FALCON_NET_RTT ? fmt::format("{:.2f} ms", static_cast<double>(its.rttNanoseconds) / 1e6) : "-",
      its.valid & FALCON_NET_RTT ? fmt::format("{:.2f} ms", static_cast<double>(its.rttLeastNanoseconds) / 1e6) : "-",
      its.valid & FALCON_NET_RETRANSMITS ? std::to_string(its.retransmits) : "-");
}

void print(const RankFile& rank, const transport::net::NetSnapshot& net) {
  for (std::size_t number = 0; number < net.devices.size(); ++number) {
    const auto& device = net.devices[number];
    tools::print(stdout, "  {:>4}  {:<14} {:<12} {:<10} {:>5}  {} connections, {:.1f} MB sent, {:.1f} MB received\n",
                 rank.view.identity.jobRank, net.plugin, device.name, conditionName(device.condition),
                 scoreText(device.valid, device.score), device.connections, static_cast<double>(device.bytesSent) / 1e6,
                 static_cast<double>(device.bytesReceived) / 1e6);
    std::vector<falconNetConnection_v1> shown;
    std::copy_if(net.connections.begin(), net.connections.end(), std::back_inserter(shown),
                 [&](const auto& one) { return one.sends != 0 && one.device == number && one.bytes > 0; });
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto& one, const auto& other) { return one.score > other.score; });
    if (shown.size() > mostRows) shown.resize(mostRows);
    for (const auto& connection : shown) print(connection);
  }
}

bool isCongested(const transport::net::NetSnapshot& net) {
  return std::any_of(net.connections.begin(), net.connections.end(),
                     [](const auto& one) { return one.condition == falconNetCongested; });
}

}  // namespace

const char* conditionName(int condition) {
  switch (condition) {
    case falconNetHealthy:
      return "healthy";
    case falconNetSlow:
      return "slow";
    case falconNetCongested:
      return "congested";
    default:
      return "idle";
  }
}

int showNet(const std::string& name, bool asJson) {
  const auto jobs = findJobs(name);
  if (!jobs) return 1;
  int code = 0;
  json list = json::array();
  for (const JobFiles& job : *jobs) {
    if (!job.running()) continue;
    json ranks = json::array();
    if (!asJson) tools::print(stdout, "job {}\n", job.name);
    std::size_t without = 0;
    for (const RankFile& rank : job.ranks) {
      const auto net = rank.alive ? rank.net() : std::nullopt;
      without += rank.alive && !net;
      if (!net) continue;
      if (isCongested(*net)) code = 3;
      if (asJson)
        ranks.push_back(toJson(rank, *net));
      else
        print(rank, *net);
    }
    if (without > 0 && !asJson)
      tools::print(stdout,
                   "  {} rank{} tell nothing: they use no net plugin of ours "
                   "(NCCL_NET_PLUGIN=libnccl-net-falcon-socket.so), or have "
                   "just begun\n",
                   without, without == 1 ? "" : "s");
    list.push_back({{"job", job.name}, {"ranks", ranks}});
  }
  if (asJson)
    fmt::print("{}\n", tools::jsonText(list, 2));
  else if (list.empty())
    tools::print(stderr, "falcon status: no job of this user runs on this host with NCCL_FALCON=1\n");
  return code;
}

}  // namespace falcon::jobs
