// The two ends of one link's test as state machines. The receiving end leads: it asks for rounds of bytes and times
// them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "validate/link_measurement.h"
#include "validate/processor_stat.h"

namespace falcon::validate {

/// How much is sent, and how long anybody waits.
struct LinkTestSettings {
  transport::Lane lane = transport::Lane::test;
  /// Sent first and not counted: opens TCP's window and uses up a traffic shaper's burst.
  std::uint64_t warmUpBytes = 128 << 10;
  /// The first round that counts: ten times a shaper's burst and more (32 KiB and less are usual). Where the warm-up
  /// tells that so much takes longer than `steady` it is less, but never less than `fewestBytes`.
  std::uint64_t firstBytes = 512 << 10;
  std::uint64_t fewestBytes = firstBytes;
  /// Rounds grow fourfold until one takes `longEnough`, or this many bytes.
  std::uint64_t mostBytes = 16 << 20;
  Nanoseconds longEnough = 10ms;
  /// The last size is repeated, at least so often and so long. Of rounds that take `longEnough` the middle one counts,
  /// without its head; of shorter ones, and where an end waited for a core, the best: a busy machine only ever makes a
  /// round slower, by whole time slices (4-15 ms). What takes `steady` averages that out.
  int repeats = 3;
  Nanoseconds repeatFor = 30ms;
  Nanoseconds steady = 200ms;
  /// From the first answer on. What has arrived then decides.
  Nanoseconds limit = 1500ms;
  /// For the first answer; covers that both ends are not told at the same moment.
  Nanoseconds answerLimit = 2s;
  /// How long the calling thread has been ready without running, so far.
  Nanoseconds (*runQueueWait)() = &threadRunQueueWait;
};
/// In a trap: as above.
LinkTestSettings testSettings();
/// The same for a wave of many: at 50 Mbit/s 0.13 s instead of 0.3 s.
LinkTestSettings briefSettings();
/// Beside the running job: one round of 512 KiB.
LinkTestSettings probeSettings();
inline LinkTestSettings settingsOf(const Wave& wave) {
  if (wave.lane == transport::Lane::probe) return probeSettings();
  return wave.brief ? briefSettings() : testSettings();
}

/// One end. Used by one thread; never blocks.
class LinkTestEnd {
 public:
  virtual ~LinkTestEnd() = default;
  /// Does what can be done now; true if anything was. Problems end the test and show in the measurement.
  virtual bool progress() = 0;
  virtual bool finished() const = 0;
  /// Ends the test now: what has arrived decides.
  virtual void giveUp(LinkStatus reason) = 0;
  /// Appends what the end waits for.
  virtual void addWaitSources(std::vector<transport::WaitSource>& sources) const = 0;
  /// The receiving end's result, once finished; nothing at the sending end.
  virtual std::optional<LinkMeasurement> measurement() const = 0;
};

/// Data travel on channel 0 of the lane from `link.from` to `link.to`, questions on channel 1 the other way. `ports`
/// are the ports of rank `link.from` (sender) or `link.to` (receiver) of the communicator; they and the clock outlive
/// the end. Both ends may be driven by one thread. `run`: see Wave.
Result<std::unique_ptr<LinkTestEnd>> startLinkTestSender(transport::Ports& ports, const WaveLink& link,
                                                         std::uint64_t run, const LinkTestSettings& settings,
                                                         const Clock& clock);
Result<std::unique_ptr<LinkTestEnd>> startLinkTestReceiver(transport::Ports& ports, const WaveLink& link,
                                                           std::uint64_t run, const LinkTestSettings& settings,
                                                           const Clock& clock);

}  // namespace falcon::validate
