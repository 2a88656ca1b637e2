// What a link test found, and what a wave of tests consists of: values, and how they travel between processes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "transport/ports.h"

namespace falcon::validate {

/// One directed link to test. Bytes flow from `from` to `to`, ranks of the communicator; `link` says the same in job
/// ranks.
struct WaveLink {
  CommunicatorId communicator = 0;
  Link link;
  Rank from = -1;
  Rank to = -1;
  auto operator<=>(const WaveLink&) const = default;
};

/// Links that are tested at the same time.
struct Wave {
  /// Rises from wave to wave of a job: what is left over of an earlier wave in a connection is told by it.
  std::uint64_t run = 0;
  /// test: the job is held, as fast as it goes. probe: beside the running job, small.
  transport::Lane lane = transport::Lane::test;
  std::vector<WaveLink> links;
  bool brief = false;  ///< one of many: with shorter rounds, so that all of them fit into the trap
  auto operator<=>(const Wave&) const = default;
};

enum class LinkStatus : std::uint8_t {
  measured,
  timeout,  ///< the other end did not answer in time: says nothing about speed
  failed,   ///< the connection broke or could not be made
  stopped   ///< ended from outside before there was a result
};
/// "measured", "timeout" ...
const char* nameOf(LinkStatus status);

/// One link's result, made by its receiving end.
struct LinkMeasurement {
  CommunicatorId communicator = 0;
  Link link;  ///< job ranks
  transport::Medium medium = transport::Medium::socket;
  LinkStatus status = LinkStatus::timeout;
  std::uint64_t bytes = 0;  ///< of the round that counts
  double seconds = 0;       ///< from asking for it until all of it had arrived
  double latency = -1;      ///< seconds for a question and its answer; -1: unknown
  double waited = 0;        ///< of `seconds`, in which an end was ready but had no core
  double bytesPerSecond() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
  /// The machine was measured rather than the link. On a slow link both ends sleep; where cores are missing they queue.
  /// Not to be taken off the time: an end that yields while its peer works queues as well.
  bool disturbed() const { return waited > 0.25 * seconds; }
  auto operator<=>(const LinkMeasurement&) const = default;
};

std::string encode(const Wave& wave);
std::string encode(const std::vector<LinkMeasurement>& measurements);
/// Errors: bytes that are not such a message, or say something impossible. Decided by the sender's fault: not logged
/// here.
Result<Wave> decodeWave(std::string_view bytes);
Result<std::vector<LinkMeasurement>> decodeMeasurements(std::string_view bytes);

}  // namespace falcon::validate
