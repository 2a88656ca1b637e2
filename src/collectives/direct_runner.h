// Runs one rank's part of a direct algorithm, without ever blocking.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "base/call.h"
#include "collectives/direct_algorithm.h"
#include "collectives/direct_member.h"
#include "collectives/step_runner.h"

namespace falcon::collectives {

/// Of the `count` elements of a call, how many are run as one operation: where ranks share cores, as many as the board
/// holds.
std::size_t partOfCall(const DirectMember& member, const DirectAlgorithm& algorithm, std::size_t count,
                       std::size_t elementBytes);

/// Used by one thread. The direct operations of a communicator run one after the other, in the same order on all ranks.
/// Allocates nothing.
class DirectRunner {
 public:
  using State = StepRunner::State;

  DirectRunner(DirectMember& member, const DirectAlgorithm& algorithm, const DirectShape& shape, const Call& call,
               const Operands& operands);

  /// Another call like the last one, which has finished, with other buffers. Not for watched ones.
  void again(const Call& call);

  /// Only before the first progress().
  void watch(TransferWatch watch) { watch_ = std::make_unique<TransferWatch>(std::move(watch)); }

  /// Does what can be done now, but only so much that others get their turn. `finished` once the result is there and
  /// nobody reads this rank's buffers any more. Errors: remote, invalidUsage where the ranks' calls differ.
  Result<State> progress();
  /// After `stuck`: what must come first.
  const transport::NodeBoard::Awaited& awaited() const { return awaited_; }

  /// Null where nothing was measured.
  TransferWatch* transfers() const { return watch_.get(); }

 private:
  using Stage = transport::NodeBoard::Stage;
  enum class Phase : std::uint8_t { entering, stepping, leaving, finished };

  /// What came of asking whether something has happened; `failed`: it cannot any more, see failure_. In place of a
  /// Result, which a short call would spend a third of its time on.
  enum class Ready : std::uint8_t { no, yes, failed };

  Ready fail(Error error);
  Result<State> notReady(Ready ready, bool moved, const transport::NodeBoard::Awaited& before);
  template <class Condition>
  Ready await(const transport::NodeBoard::Awaited& awaited, Condition holds);
  void planPart();
  void beginPart();
  DirectStep stepAt(int index) const {
    return static_cast<std::size_t>(index) < planned_.size() ? planned_[index] : algorithm_->step(shape_, index);
  }
  Ready enter();
  Ready runStep(std::size_t& movedBytes);
  Status runPiece(const DirectStep& step, Range piece);
  Status copyPiece(const DirectStep& step, Range piece, bool last);
  Status reducePiece(const DirectStep& step, Range piece, bool last);
  Ready peersReady(const DirectStep& step);
  Ready reached(Rank peer, Stage stage);
  Ready hasRead(Rank reader);
  Ready readersHaveLeft();
  /// Its message is not on the board.
  bool readsAddressOf(Rank peer) const {
    return !transport::NodeBoard::isOnBoard(member_->board().notice(peer, operation_).input);
  }
  /// Where `peer`'s elements [piece] are; read into scratch piece `room` where that must be.
  Result<const std::byte*> operandOf(Rank peer, Range piece, int room, bool last) const;
  std::size_t bytes(std::size_t count) const { return count * operands_.elementBytes; }

  DirectMember* member_;
  const DirectAlgorithm* algorithm_;
  DirectShape shape_;  // of the present part
  Operands operands_;  // its
  std::uint64_t signature_;
  std::size_t whole_;  // elements of the call, as Call::count
  std::size_t part_;   // of a part: one operation on the board
  std::size_t partBegin_ = 0;
  std::size_t postedBytes_;
  int steps_;
  std::array<DirectStep, 2> planned_;  // the first ones
  bool postedAddress_;
  std::uint64_t operation_ = 0;
  Phase phase_ = Phase::entering;
  std::byte* posted_ = nullptr;  // on the board
  std::byte* aside_ = nullptr;   // where the result waits until nobody reads the input any more; null: it need not
  int step_ = 0;
  std::size_t done_ = 0;  // elements of the step
  Rank asked_ = 0;        // ranks before this one are known to be ready, or to have left
  transport::NodeBoard::Awaited awaited_;
  std::optional<Error> failure_;
  std::unique_ptr<TransferWatch> watch_;
};

}  // namespace falcon::collectives
