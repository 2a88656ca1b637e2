#include "collectives/step_runner.h"

#include <cstring>

#include "base/log.h"

namespace falcon::collectives {
namespace {

// Steps in a row before other channels and operations get their turn.
constexpr int stepsPerTurn = 8;

void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

}  // namespace

Error chunkMisfit(Rank from, std::size_t got, std::size_t expected) {
  return Error::invalidUsage(
      "rank {} sent {} bytes where {} were expected: the ranks' calls differ in count, type, root or order", from, got,
      expected);
}

void StepRunner::restart(transport::Ports& ports, const RoundSource& rounds, const Operands& operands) {
  const bool samePorts =
      &ports == ports_ && rounds.lane() == rounds_.lane() && rounds.geometry().channel == rounds_.geometry().channel;
  if (!samePorts) {
    sends_.clear();
    receives_.clear();
  }
  ports_ = &ports;
  rounds_ = rounds;
  operands_ = operands;
  makeScratch();
  program_.steps.clear();
  roundsMade_ = 0;
  beginSteps();
}

bool StepRunner::again(const void* input, void* output) {
  if (roundsMade_ != 1 || watch_) return false;
  operands_.input = static_cast<const std::byte*>(input);
  operands_.output = static_cast<std::byte*>(output);
  beginSteps();
  return true;
}

void StepRunner::beginSteps() {
  nextStep_ = 0;
  allDone_ = false;
  stuckOn_ = nullptr;
  stuckOnCredit_ = nullptr;
  watch_.reset();
}

void StepRunner::makeScratch() {
  const std::size_t bytes = rounds_.scratch() * operands_.elementBytes;
  if (scratch_.size() < bytes) scratch_.resize(bytes);
}

Result<transport::SendPort*> StepRunner::sendPort(Rank peer) {
  for (const auto& opened : sends_)
    if (opened.peer == peer) return opened.port;
  auto port = ports_->openSend({peer, rounds_.geometry().channel, rounds_.lane()});
  if (port) sends_.push_back({peer, *port});
  return port;
}

Result<transport::ReceivePort*> StepRunner::receivePort(Rank peer) {
  for (const auto& opened : receives_)
    if (opened.peer == peer) return opened.port;
  auto port = ports_->openReceive({peer, rounds_.geometry().channel, rounds_.lane()});
  if (port) receives_.push_back({peer, *port});
  return port;
}

Result<bool> StepRunner::moveSends() {
  bool moved = false;
  for (const auto& opened : sends_) {
    if (opened.port->flushed()) continue;
    const auto progressed = opened.port->progress();
    if (!progressed) return progressed.error();
    moved |= *progressed;
  }
  return moved;
}

Result<StepRunner::State> StepRunner::progress() {
  auto moved = moveSends();
  if (!moved) return moved.error();
  for (int i = 0; i < stepsPerTurn && !allDone_; ++i) {
    if (nextStep_ == program_.steps.size()) {
      // The last round's steps stay: see again().
      allDone_ = rounds_.finished() || !rounds_.next(program_);
      if (allDone_) break;
      nextStep_ = 0;
      ++roundsMade_;
    }
    const auto ran = runStep(program_.steps[nextStep_]);
    if (!ran) return ran.error();
    if (!*ran) break;
    ++nextStep_;
    moved = true;
  }
  if (allDone_) {
    bool flushed = true;
    for (const auto& opened : sends_) flushed &= opened.port->flushed();
    if (flushed) {
      if (watch_) watch_->flushed();
      return State::finished;
    }
  }
  return *moved ? State::advanced : State::stuck;
}

Result<bool> StepRunner::runStep(const Step& step) {
  const std::size_t bytes = step.count * operands_.elementBytes;
  stuckOn_ = nullptr;
  stuckOnCredit_ = nullptr;

  const std::byte* received = nullptr;
  transport::ReceivePort* receiving = nullptr;
  if (step.receiveFrom >= 0) {
    const auto port = receivePort(step.receiveFrom);
    if (!port) return port.error();
    receiving = *port;
    const bool onlyCopied = step.source == Where::none && step.destination != Where::none;
    const auto ready = onlyCopied ? receiving->readyInto({destinationOf(step), bytes}) : receiving->ready();
    if (!ready) return ready.error();
    if (!*ready) {
      stuckOn_ = receiving;
      if (watch_) watch_->stuckReceiving(step.receiveFrom);
      return false;
    }
    if (receiving->chunk().size() != bytes)
      return log::decided(chunkMisfit(step.receiveFrom, receiving->chunk().size(), bytes));
    received = receiving->chunk().data();
  }

  std::byte* outgoing = nullptr;
  transport::SendPort* sending = nullptr;
  if (step.sendTo >= 0) {
    const auto port = sendPort(step.sendTo);
    if (!port) return port.error();
    sending = *port;
    if (watch_) watch_->sendsBy(step.sendTo, *sending);
    const auto slot = sending->acquire();
    if (!slot) return slot.error();
    if (slot->empty()) {
      stuckOnCredit_ = sending;
      if (watch_) watch_->stuckSending(step.sendTo, !sending->flushed());
      return false;
    }
    if (slot->size() < bytes)
      return log::decided(Error::internal("a chunk of {} bytes does not fit into {}", bytes, slot->size()));
    outgoing = slot->data();
  }

  if (watch_) watch_->stepBegins(step.receiveFrom, step.sendTo);
  // What is sent lies still until it has left: nobody can have made of it what is written there later in this operation
  // before it arrived.
  const std::byte* lasting = sending && sending->sendsInPlace(bytes) ? lastingValue(step) : nullptr;
  compute(step, received, lasting ? nullptr : outgoing);
  if (receiving) receiving->release();
  if (sending) {
    // At once, so that the bytes travel while the next chunk is computed; what needs no computing leaves together.
    if (lasting)
      sending->commitFrom({lasting, bytes}, sendsOnlyNext(step));
    else
      sending->commit(bytes);
  }
  if (watch_) watch_->stepEnds(step.receiveFrom, step.sendTo, bytes);
  return true;
}

/// Whether the step after `step` sends to the same rank and waits for nobody.
bool StepRunner::sendsOnlyNext(const Step& step) const {
  const Step* next = &step + 1;
  return step.receiveFrom < 0 && next != program_.steps.data() + program_.steps.size() && next->receiveFrom < 0 &&
         next->sendTo == step.sendTo;
}

/// Null: nowhere.
std::byte* StepRunner::destinationOf(const Step& step) {
  if (step.destination == Where::none) return nullptr;
  std::byte* const whole = step.destination == Where::output ? operands_.output : scratch_.data();
  return whole + step.destinationOffset * operands_.elementBytes;
}

/// Null: there is none.
const std::byte* StepRunner::sourceOf(const Step& step) const {
  const std::size_t offset = step.sourceOffset * operands_.elementBytes;
  switch (step.source) {
    case Where::input:
      return operands_.input + offset;
    case Where::output:
      return operands_.output + offset;
    case Where::scratch:
      return scratch_.data() + offset;
    case Where::none:
      break;
  }
  return nullptr;
}

/// Where the step's value is in the user's buffers once it is computed; null: nowhere. Scratch is used again by the
/// next round, which may begin before this one's bytes have left.
const std::byte* StepRunner::lastingValue(const Step& step) const {
  if (step.destination == Where::output) return operands_.output + step.destinationOffset * operands_.elementBytes;
  const bool asItIs = step.receiveFrom < 0 && !operands_.scale && !(step.last && operands_.divide);
  return asItIs && step.source != Where::scratch ? sourceOf(step) : nullptr;
}

void StepRunner::compute(const Step& step, const std::byte* received, std::byte* outgoing) {
  const std::size_t bytes = step.count * operands_.elementBytes;
  const std::byte* source = sourceOf(step);
  std::byte* destination = destinationOf(step);
  std::byte* target = destination ? destination : outgoing;
  if (!target) return;
  if (operands_.scale && step.source == Where::input) {
    // Every algorithm looks at an element of its input once, so it is multiplied once.
    operands_.scale(target, source, operands_.scalar.data(), step.count);
    source = target;
  }
  if (received && source)
    operands_.combine(target, step.ownFirst ? source : received, step.ownFirst ? received : source, step.count);
  else
    copy(target, received ? received : source, bytes);
  if (step.last && operands_.divide && operands_.members > 1) operands_.divide(target, step.count, operands_.members);
  if (outgoing && target != outgoing) std::memcpy(outgoing, target, bytes);
}

void StepRunner::appendWaitSources(std::vector<transport::WaitSource>& sources) const {
  if (stuckOn_) sources.push_back(stuckOn_->waitSource());
  if (stuckOnCredit_) sources.push_back(stuckOnCredit_->waitSource());
  for (const auto& opened : sends_)
    if (opened.port != stuckOnCredit_ && !opened.port->flushed()) sources.push_back(opened.port->waitSource());
}

}  // namespace falcon::collectives
