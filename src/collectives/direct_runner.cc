#include "collectives/direct_runner.h"

#include <cstring>

#include "base/log.h"

namespace falcon::collectives {
namespace {

using transport::NodeBoard;

// Moved in a row before others get their turn.
constexpr std::size_t bytesPerTurn = 4 << 20;
// In one go: a read has its price (in pieces of 256 KiB AllGather of 1 MiB between 2 ranks takes 5 % longer).
constexpr std::size_t copiedBytes = bytesPerTurn;
constexpr std::size_t cachedBytes = 256 << 10;

/// Tells calls apart that do not fit together.
std::uint64_t signatureOf(const Call& call) {
  const auto what = static_cast<std::uint64_t>(call.operation) | static_cast<std::uint64_t>(call.type) << 8 |
                    static_cast<std::uint64_t>(call.reduction) << 16 |
                    static_cast<std::uint64_t>(static_cast<std::uint32_t>(call.peer + 1)) << 24;
  return what ^ call.count * 0x9e3779b97f4a7c15;
}

std::uint64_t addressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace

std::size_t partOfCall(const DirectMember& member, const DirectAlgorithm& algorithm, std::size_t count,
                       std::size_t elementBytes) {
  return algorithm.divisible ? std::min(count, member.partBytes() / elementBytes) : count;
}

DirectRunner::DirectRunner(DirectMember& member, const DirectAlgorithm& algorithm, const DirectShape& shape,
                           const Call& call, const Operands& operands)
    : member_(&member),
      algorithm_(&algorithm),
      shape_(shape),
      operands_(operands),
      signature_(signatureOf(call)),
      whole_(shape.count),
      part_(partOfCall(member, algorithm, shape.count, operands.elementBytes)) {
  planPart();
  beginPart();
}

void DirectRunner::again(const Call& call) {
  operands_.input = static_cast<const std::byte*>(call.send);
  operands_.output = static_cast<std::byte*>(call.receive);
  if (whole_ > part_) {
    partBegin_ = 0;
    planPart();
  }
  beginPart();
}

/// What follows from the part's shape: a call like the last one has the same.
void DirectRunner::planPart() {
  shape_.count = std::min(part_, whole_ - partBegin_);
  postedBytes_ = bytes(algorithm_->posts(shape_));
  postedAddress_ = postedBytes_ > member_->inlineBytes();
  steps_ = algorithm_->steps(shape_);
  for (int index = 0; index < steps_ && index < std::ssize(planned_); ++index)
    planned_[index] = algorithm_->step(shape_, index);
}

void DirectRunner::beginPart() {
  operation_ = 0;
  phase_ = Phase::entering;
  aside_ = nullptr;
  step_ = 0;
  done_ = 0;
  asked_ = 0;
  awaited_ = {};
}

DirectRunner::Ready DirectRunner::fail(Error error) {
  failure_ = std::move(error);
  return Ready::failed;
}

/// `before`: what was awaited when progress() began.
Result<DirectRunner::State> DirectRunner::notReady(Ready ready, bool moved, const NodeBoard::Awaited& before) {
  if (ready == Ready::failed) return *failure_;
  // Who waits for something else than before has to say so before it sleeps: what it waited for has come and rings no
  // more, and the other rank does not know. 1 MiB broadcast among four took 4 ms now and then, until the next look.
  const bool another = before.rank != NodeBoard::Awaited::anyone && awaited_ != before;
  return moved || another ? State::advanced : State::stuck;
}

Result<DirectRunner::State> DirectRunner::progress() {
  bool moved = false;
  const NodeBoard::Awaited before = awaited_;
  if (phase_ == Phase::entering) {
    if (operation_ == 0) operation_ = member_->nextOperation();
    if (const Ready entered = enter(); entered != Ready::yes) return notReady(entered, moved, before);
    phase_ = Phase::stepping;
    moved = true;
  }
  if (phase_ == Phase::stepping) {
    for (std::size_t turn = 0; step_ < steps_;) {
      if (turn >= bytesPerTurn) return State::advanced;
      if (const Ready ran = runStep(turn); ran != Ready::yes) return notReady(ran, moved, before);
      moved = true;
    }
    member_->board().complete(operation_);
    phase_ = Phase::leaving;
    moved = true;
  }
  if (phase_ == Phase::leaving) {
    if (const Ready left = readersHaveLeft(); left != Ready::yes) return notReady(left, moved, before);
    if (aside_) std::memcpy(operands_.output, aside_, bytes(shape_.count));
    phase_ = Phase::finished;
    if (partBegin_ + shape_.count < whole_) {
      partBegin_ += shape_.count;
      // Buffers that a rank does not use may be null.
      if (operands_.input) operands_.input += bytes(shape_.count);
      if (operands_.output) operands_.output += bytes(shape_.count);
      planPart();
      beginPart();
      return State::advanced;
    }
  }
  return State::finished;
}

/// `yes` once `holds()`; an error if the rank which would have to bring that about has left. What it published before
/// it left counts: so that is looked at once more.
template <class Condition>
DirectRunner::Ready DirectRunner::await(const NodeBoard::Awaited& awaited, Condition holds) {
  if (holds()) return Ready::yes;
  awaited_ = awaited;
  if (!member_->board().hasLeft(awaited.rank)) [[likely]]
    return Ready::no;
  if (holds()) return Ready::yes;
  return fail(
      log::decided(Error::remote("rank {} has left the communicator in the middle of a collective", awaited.rank)));
}

/// Publishes what the others read from this rank, once the slot is not needed any more.
DirectRunner::Ready DirectRunner::enter() {
  const std::size_t posted = postedBytes_;
  if (posted == 0) return Ready::yes;
  NodeBoard& board = member_->board();
  const std::uint64_t place = postedAddress_ ? NodeBoard::inLine : NodeBoard::placeFor(posted);
  while (!board.mayPost(operation_, place)) {
    const Rank slow = board.blocker();
    const Ready ready = await(NodeBoard::awaitedCompletion(slow, board.needed()),
                              [&] { return board.hasCompleted(slow, board.needed()); });
    if (ready != Ready::yes) return ready;
  }
  NodeBoard::Notice notice{.signature = signature_};
  if (!postedAddress_) {
    notice.input = place;
    posted_ = board.payload(operation_, place);
    std::memcpy(posted_, operands_.input, posted);
  } else {
    notice.input = addressOf(operands_.input);
  }
  // On the board, what this rank makes of its segment takes the place of its input, which nobody else reads there.
  if (algorithm_->output == Output::shared) notice.output = postedAddress_ ? addressOf(operands_.output) : place;
  if (algorithm_->output == Output::late && notice.input == addressOf(operands_.output))
    aside_ = member_->aside(posted);
  board.post(operation_, notice);
  return Ready::yes;
}

DirectRunner::Ready DirectRunner::reached(Rank peer, Stage stage) {
  const NodeBoard& board = member_->board();
  const Ready ready =
      await(NodeBoard::awaitedStage(peer, operation_, stage), [&] { return board.reached(peer, operation_, stage); });
  if (ready != Ready::yes) {
    if (watch_ && ready == Ready::no) watch_->stuckReceiving(peer);
    return ready;
  }
  if (board.notice(peer, operation_).signature != signature_) [[unlikely]]
    return fail(log::decided(Error::invalidUsage(
        "rank {} made another call: the ranks' calls differ in operation, count, type, reduction, root or order",
        peer)));
  return Ready::yes;
}

DirectRunner::Ready DirectRunner::peersReady(const DirectStep& step) {
  if (step.kind == DirectStep::Kind::copy) return step.peer == shape_.rank ? Ready::yes : reached(step.peer, step.from);
  for (; asked_ < shape_.size; ++asked_) {
    if (asked_ == shape_.rank) continue;
    if (const Ready ready = reached(asked_, Stage::posted); ready != Ready::yes) return ready;
  }
  return Ready::yes;
}

/// Moves one piece of the present step, and counts its bytes.
DirectRunner::Ready DirectRunner::runStep(std::size_t& movedBytes) {
  const DirectStep step = stepAt(step_);
  if (step.count > 0) {
    if (done_ == 0) {
      if (const Ready ready = peersReady(step); ready != Ready::yes) return ready;
    }
    const bool copies = step.kind == DirectStep::Kind::copy;
    const std::size_t most = copies ? copiedBytes : DirectMember::pieceBytes;
    std::size_t end = step.count;
    // A division takes as long as ten instructions of another kind.
    if (bytes(step.count - done_) > most) end = done_ + most / operands_.elementBytes;
    const Range piece{step.source + done_, step.source + end};
    if (const Status ran = runPiece(step, piece); !ran) return fail(ran.error());
    movedBytes += bytes(piece.size());
    done_ += piece.size();
    if (done_ < step.count) return Ready::yes;
  }
  if (step.publish) member_->board().advance(operation_, Stage::output);
  if (algorithm_->inTurn && step.peer != shape_.rank && readsAddressOf(step.peer))
    member_->board().take(step.peer, operation_, turnOf(step.peer, shape_.rank, shape_.size));
  done_ = 0;
  asked_ = 0;
  ++step_;
  return Ready::yes;
}

Status DirectRunner::runPiece(const DirectStep& step, Range piece) {
  const bool last = piece.end == step.source + step.count;
  return step.kind == DirectStep::Kind::copy ? copyPiece(step, piece, last) : reducePiece(step, piece, last);
}

Status DirectRunner::copyPiece(const DirectStep& step, Range piece, bool last) {
  std::byte* to = operands_.output + bytes(step.destination + piece.begin - step.source);
  if (step.peer == shape_.rank) {
    const std::byte* from = operands_.input + bytes(piece.begin);
    if (to != from) std::memcpy(to, from, bytes(piece.size()));
    return {};
  }
  if (watch_) watch_->stepBegins(step.peer, -1);
  const NodeBoard& board = member_->board();
  const NodeBoard::Notice notice = board.notice(step.peer, operation_);
  const std::uint64_t address = step.from == Stage::output ? notice.output : notice.input;
  if (NodeBoard::isOnBoard(address)) {
    std::memcpy(to, board.payload(step.peer, operation_, address) + bytes(piece.begin), bytes(piece.size()));
  } else if (const Status got = member_->read(step.peer, to, address + bytes(piece.begin), bytes(piece.size()), last);
             !got) {
    return got;
  }
  if (watch_) watch_->stepEnds(step.peer, -1, bytes(piece.size()));
  return {};
}

Status DirectRunner::reducePiece(const DirectStep& step, Range piece, bool last) {
  const std::size_t at = bytes(step.destination + piece.begin - step.source);
  std::byte* result = (aside_ ? aside_ : operands_.output) + at;
  // What the others hold in their caches is overwritten faster by a copy of whole lines than by a loop (2.6 us instead
  // of 4.7 for 32 KiB), as long as it stays in the caches.
  const bool shared = algorithm_->output == Output::shared;
  const bool copied = shared && bytes(step.count) <= cachedBytes;
  std::byte* sums = shared && !postedAddress_ ? posted_ + at : member_->scratch(0);
  // All ranks reduce in the order of ranks, so that all get the same bits. Only the last turn writes to the output,
  // which may be this rank's input.
  const std::byte* sum = nullptr;
  for (Rank peer = 0; peer < shape_.size; ++peer) {
    const bool measured = watch_ && peer != shape_.rank;
    if (measured) watch_->stepBegins(peer, -1);
    const auto operand = operandOf(peer, piece, peer == 0 ? 0 : 1, last);
    if (!operand) return operand.error();
    if (peer == 0) {
      sum = *operand;
    } else {
      std::byte* target = copied || peer + 1 < shape_.size ? sums : result;
      operands_.combine(target, sum, *operand, piece.size());
      sum = target;
    }
    if (measured) watch_->stepEnds(peer, -1, bytes(piece.size()));
  }
  if (operands_.divide) operands_.divide(copied ? sums : result, piece.size(), operands_.members);
  if (copied) std::memcpy(result, sums, bytes(piece.size()));
  return {};
}

Result<const std::byte*> DirectRunner::operandOf(Rank peer, Range piece, int room, bool last) const {
  if (peer == shape_.rank) return operands_.input + bytes(piece.begin);
  const NodeBoard& board = member_->board();
  const std::uint64_t address = board.notice(peer, operation_).input;
  if (NodeBoard::isOnBoard(address)) return board.payload(peer, operation_, address) + bytes(piece.begin);
  const std::uint64_t source = address + bytes(piece.begin);
  std::byte* copied = member_->scratch(room, source);
  if (const Status got = member_->read(peer, copied, source, bytes(piece.size()), last); !got) return got.error();
  return static_cast<const std::byte*>(copied);
}

/// This one, which reads this rank's buffers, has done so.
DirectRunner::Ready DirectRunner::hasRead(Rank reader) {
  const NodeBoard& board = member_->board();
  if (!algorithm_->inTurn)
    return await(NodeBoard::awaitedCompletion(reader, operation_),
                 [&] { return board.hasCompleted(reader, operation_); });
  const int turn = turnOf(shape_.rank, reader, shape_.size);
  return await(NodeBoard::awaitedTaking(reader, operation_, turn),
               [&] { return board.hasTaken(reader, operation_, turn); });
}

/// Everyone who reads this rank's buffers has done so.
DirectRunner::Ready DirectRunner::readersHaveLeft() {
  const Readers readers = postedAddress_ ? algorithm_->readers(shape_) : Readers::nobody;
  if (readers == Readers::nobody) return Ready::yes;
  for (; asked_ < shape_.size; ++asked_) {
    if (readers == Readers::root && asked_ != shape_.root) continue;
    if (asked_ == shape_.rank) continue;
    if (const Ready left = hasRead(asked_); left != Ready::yes) return left;
  }
  return Ready::yes;
}

}  // namespace falcon::collectives
