#include "collectives/transfer_watch.h"

#include <algorithm>

namespace falcon::collectives {

TransferTiming& TransferWatch::of(Rank peer, bool sending) {
  for (TransferTiming& transfer : transfers_)
    if (transfer.peer == peer && transfer.sending == sending) return transfer;
  TransferTiming transfer = origin_;
  transfer.peer = peer;
  transfer.sending = sending;
  transfer.start = clock_.now();
  return transfers_.emplace_back(transfer);
}

void TransferWatch::stuck(Rank peer, bool sending, bool inFlight) {
  if (live_) live_->waits(peer, sending, inFlight);
  const Nanoseconds now = clock_.now();
  if (stuckPeer_ >= 0) {
    // The same wait, looked at again: settle what has passed, it may have turned from moving to waiting meanwhile.
    TransferTiming& before = of(stuckPeer_, stuckSending_);
    (stuckInFlight_ ? before.moving : before.waiting) += now - stuckSince_;
  }
  TransferTiming& transfer = of(peer, sending);
  transfer.start = std::min(transfer.start, now);
  stuckPeer_ = peer;
  stuckSending_ = sending;
  stuckInFlight_ = inFlight;
  stuckSince_ = now;
}

void TransferWatch::sendsBy(Rank peer, const transport::SendPort& port) {
  if (std::find(ports_.begin(), ports_.end(), &port) != ports_.end()) return;
  ports_.push_back(&port);
  TransferTiming& transfer = of(peer, true);
  transfer.connection = reinterpret_cast<std::uintptr_t>(&port);
  transfer.underWayBefore = port.underWay().value_or(-1ns);
}

void TransferWatch::stepBegins(Rank receivingFrom, Rank sendingTo) {
  if (live_) live_->begins(receivingFrom, sendingTo);
  stepBegan_ = clock_.now();
  if (stuckPeer_ < 0) return;
  TransferTiming& transfer = of(stuckPeer_, stuckSending_);
  (stuckInFlight_ ? transfer.moving : transfer.waiting) += stepBegan_ - stuckSince_;
  stuckPeer_ = -1;
}

void TransferWatch::stepEnds(Rank receivedFrom, Rank sentTo, std::size_t bytes) {
  if (live_) live_->ends(receivedFrom, sentTo, bytes);
  const Nanoseconds now = clock_.now();
  const auto note = [&](Rank peer, bool sending) {
    if (peer < 0) return;
    TransferTiming& transfer = of(peer, sending);
    if (transfer.bytes == 0 && transfer.start > stepBegan_) transfer.start = stepBegan_;
    transfer.bytes += bytes;
    transfer.moving += now - stepBegan_;
    transfer.stop = now;
  };
  note(receivedFrom, false);
  note(sentTo, true);
}

void TransferWatch::flushed() {
  if (live_) live_->finish();
  const Nanoseconds now = clock_.now();
  for (TransferTiming& transfer : transfers_) {
    if (!transfer.sending) continue;
    transfer.moving += now - transfer.stop;
    transfer.stop = now;
    for (const transport::SendPort* port : ports_)
      if (transfer.connection == reinterpret_cast<std::uintptr_t>(port))
        transfer.underWayAfter = port->underWay().value_or(-1ns);
  }
}

void TransferWatch::tell(TransferRecorder& recorder) const {
  if (!recorded_) return;
  for (const TransferTiming& transfer : transfers_) recorder.record(transfer);
}

}  // namespace falcon::collectives
