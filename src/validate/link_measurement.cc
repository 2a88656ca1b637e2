#include "validate/link_measurement.h"

#include <cmath>

#include "base/wire.h"

namespace falcon::validate {
namespace {

// So that other messages, and those of another version, are not taken for ours.
constexpr std::uint32_t waveMagic = 0x46575631;
constexpr std::uint32_t measurementsMagic = 0x464d5631;
constexpr std::size_t linkBytes = sizeof(CommunicatorId) + 4 * sizeof(Rank);
constexpr std::size_t measurementBytes =
    sizeof(CommunicatorId) + 2 * sizeof(Rank) + 2 + sizeof(std::uint64_t) + 3 * sizeof(double);

bool isLink(const Link& link) {
  return link.from >= 0 && link.to >= 0 && link.from != link.to;
}

}  // namespace

const char* nameOf(LinkStatus status) {
  switch (status) {
    case LinkStatus::measured:
      return "measured";
    case LinkStatus::timeout:
      return "timeout";
    case LinkStatus::failed:
      return "failed";
    case LinkStatus::stopped:
      return "stopped";
  }
  return "?";
}

std::string encode(const Wave& wave) {
  WireWriter out;
  out.put(waveMagic)
      .put(wave.run)
      .put(wave.lane)
      .put(static_cast<std::uint8_t>(wave.brief))
      .put(static_cast<std::uint32_t>(wave.links.size()));
  for (const auto& link : wave.links)
    out.put(link.communicator).put(link.link.from).put(link.link.to).put(link.from).put(link.to);
  return out.take();
}

Result<Wave> decodeWave(std::string_view bytes) {
  WireReader in(bytes);
  Wave wave;
  const bool ours = in.get<std::uint32_t>() == waveMagic;
  wave.run = in.get<std::uint64_t>();
  wave.lane = in.get<transport::Lane>();
  const auto brief = in.get<std::uint8_t>();
  wave.brief = brief != 0;
  const auto count = in.getCount(linkBytes);
  bool sane = ours && brief <= 1 && (wave.lane == transport::Lane::test || wave.lane == transport::Lane::probe);
  for (std::uint32_t i = 0; i < count; ++i) {
    WaveLink link;
    link.communicator = in.get<CommunicatorId>();
    link.link = {in.get<Rank>(), in.get<Rank>()};
    link.from = in.get<Rank>();
    link.to = in.get<Rank>();
    sane = sane && isLink(link.link) && isLink({link.from, link.to});
    wave.links.push_back(link);
  }
  if (!sane || !in.finished()) return Error::remote("{} bytes are no wave of link tests", bytes.size());
  return wave;
}

std::string encode(const std::vector<LinkMeasurement>& measurements) {
  WireWriter out;
  out.put(measurementsMagic).put(static_cast<std::uint32_t>(measurements.size()));
  for (const auto& m : measurements)
    out.put(m.communicator)
        .put(m.link.from)
        .put(m.link.to)
        .put(m.medium)
        .put(m.status)
        .put(m.bytes)
        .put(m.seconds)
        .put(m.latency)
        .put(m.waited);
  return out.take();
}

Result<std::vector<LinkMeasurement>> decodeMeasurements(std::string_view bytes) {
  WireReader in(bytes);
  bool sane = in.get<std::uint32_t>() == measurementsMagic;
  const auto count = in.getCount(measurementBytes);
  std::vector<LinkMeasurement> measurements;
  for (std::uint32_t i = 0; i < count; ++i) {
    LinkMeasurement m;
    m.communicator = in.get<CommunicatorId>();
    m.link = {in.get<Rank>(), in.get<Rank>()};
    m.medium = in.get<transport::Medium>();
    m.status = in.get<LinkStatus>();
    m.bytes = in.get<std::uint64_t>();
    m.seconds = in.get<double>();
    m.latency = in.get<double>();
    m.waited = in.get<double>();
    sane = sane && isLink(m.link) && m.medium <= transport::Medium::socket && m.status <= LinkStatus::stopped &&
           std::isfinite(m.seconds) && m.seconds >= 0 && std::isfinite(m.latency) && m.waited >= 0 &&
           m.waited <= m.seconds && (m.status != LinkStatus::measured || (m.bytes > 0 && m.seconds > 0));
    measurements.push_back(m);
  }
  if (!sane || !in.finished()) return Error::remote("{} bytes are no list of link measurements", bytes.size());
  return measurements;
}

}  // namespace falcon::validate
