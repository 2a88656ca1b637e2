#include "collectives/profiled_transfers.h"

#include <unistd.h>

#include <utility>

namespace falcon::collectives {

using plugin::EventState;

ProfiledTransfers::Operation& ProfiledTransfers::of(Rank peer, bool sending) {
  for (Operation& operation : operations_)
    if (operation.peer == peer && operation.sending == sending) return operation;
  Operation& operation = operations_.emplace_back(Operation{.peer = peer, .sending = sending});
  if (!call_.wants(plugin::bitsThatTell(plugin::proxyOpEvent))) return operation;
  plugin::Event event{.type = plugin::proxyOpEvent, .parent = call_.event, .rank = call_.session->rank()};
  event.proxyOp = {.process = getpid(),
                   .channel = static_cast<std::uint8_t>(size_.channel),
                   .peer = peer,
                   .steps = size_.steps,
                   .chunkBytes = size_.chunkBytes,
                   .sends = sending ? 1 : 0};
  operation.event = call_.session->start(event);
  call_.session->state(operation.event, EventState::proxyOpInProgress);
  return operation;
}

void ProfiledTransfers::openStep(Operation& operation) {
  if (operation.moving) closeStep(operation);
  if (operation.step || !call_.wants(plugin::bitsThatTell(plugin::proxyStepEvent))) return;
  plugin::Event event{.type = plugin::proxyStepEvent, .parent = operation.event, .rank = call_.session->rank()};
  event.proxyStep = {operation.steps++};
  operation.step = call_.session->start(event);
  operation.told = EventState::proxyOpInProgress;
  if (operation.sending) tell(operation, EventState::sendGpuWait, 0);
}

void ProfiledTransfers::closeStep(Operation& operation) {
  call_.session->stop(std::exchange(operation.step, nullptr));
  operation.moving = false;
}

/// Each state once, however often it is looked at.
void ProfiledTransfers::tell(Operation& operation, EventState state, std::size_t bytes) {
  if (operation.told == state && bytes == 0) return;
  operation.told = state;
  plugin::StateArguments arguments{};
  arguments.proxyStep.transferred = bytes;
  call_.session->state(operation.step, state, arguments);
}

void ProfiledTransfers::waits(Rank peer, bool sending, bool inFlight) {
  Operation& operation = of(peer, sending);
  if (sending && inFlight && operation.moving) return;  // that is what its last step does
  openStep(operation);
  tell(operation, sending ? EventState::sendPeerWait : EventState::receiveWait, 0);
}

void ProfiledTransfers::begins(Rank receivingFrom, Rank sendingTo) {
  if (receivingFrom >= 0) {
    Operation& operation = of(receivingFrom, false);
    openStep(operation);
    tell(operation, EventState::receiveWait, 0);
  }
  if (sendingTo >= 0) {
    Operation& operation = of(sendingTo, true);
    openStep(operation);
    tell(operation, EventState::sendPeerWait, 0);
  }
  // What has come is used from now on; there is nothing to flush.
  if (receivingFrom >= 0) {
    Operation& operation = of(receivingFrom, false);
    tell(operation, EventState::receiveFlushWait, 0);
    tell(operation, EventState::receiveGpuWait, 0);
  }
}

void ProfiledTransfers::ends(Rank receivedFrom, Rank sentTo, std::size_t bytes) {
  if (receivedFrom >= 0) {
    Operation& operation = of(receivedFrom, false);
    openStep(operation);
    tell(operation, EventState::receiveGpuWait, bytes);
    closeStep(operation);
  }
  if (sentTo >= 0) {
    Operation& operation = of(sentTo, true);
    openStep(operation);
    tell(operation, EventState::sendWait, bytes);
    operation.moving = true;
  }
}

void ProfiledTransfers::finish() {
  for (Operation& operation : operations_) {
    closeStep(operation);
    call_.session->stop(std::exchange(operation.event, nullptr));
  }
  operations_.clear();
}

}  // namespace falcon::collectives
