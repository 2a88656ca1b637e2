// Runs one rank's steps on one channel over ports, without ever blocking.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/result.h"
#include "collectives/algorithm.h"
#include "collectives/reduce_kernels.h"
#include "collectives/transfer_watch.h"
#include "transport/ports.h"

namespace falcon::collectives {

/// A chunk came of another size than this rank's call says.
Error chunkMisfit(Rank from, std::size_t got, std::size_t expected);

/// What the steps work on.
struct Operands {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t elementBytes = 1;
  CombineKernel combine = nullptr;  ///< null where nothing is reduced
  DivideKernel divide = nullptr;    ///< avg only
  int members = 1;                  ///< what avg divides by
  ScaleKernel scale = nullptr;      ///< preMulSum only
  std::array<std::byte, 8> scalar{};
};

/// Used by one thread at a time. The ports it uses are its own until it has finished.
class StepRunner {
 public:
  enum class State { stuck, advanced, finished };

  StepRunner(transport::Ports& ports, RoundSource rounds, const Operands& operands)
      : ports_(&ports), rounds_(std::move(rounds)), operands_(operands) {
    makeScratch();
  }

  /// As a new one, but keeps the memory of the last.
  void restart(transport::Ports& ports, const RoundSource& rounds, const Operands& operands);

  /// After it has finished, and all of it was one round: the same steps once more, between other buffers. False: it was
  /// more than one round, nothing has happened.
  bool again(const void* input, void* output);

  /// Only before the first progress().
  void watch(TransferWatch watch) { watch_ = std::make_unique<TransferWatch>(std::move(watch)); }

  /// Does what can be done now, but only so much that others get their turn. `finished` once all bytes have left this
  /// process.
  Result<State> progress();
  /// After `stuck`: what would change it.
  void appendWaitSources(std::vector<transport::WaitSource>& sources) const;
  /// How many that can be, with the peers that it has sent to until now.
  std::size_t mostWaitSources() const { return 1 + sends_.size(); }

  /// Null where nothing was measured.
  TransferWatch* transfers() const { return watch_.get(); }

 private:
  template <class Port>
  struct Opened {
    Rank peer;
    Port* port;
  };

  Result<transport::SendPort*> sendPort(Rank peer);
  Result<transport::ReceivePort*> receivePort(Rank peer);
  Result<bool> moveSends();
  Result<bool> runStep(const Step& step);
  void beginSteps();
  void makeScratch();
  bool sendsOnlyNext(const Step& step) const;
  std::byte* destinationOf(const Step& step);
  const std::byte* sourceOf(const Step& step) const;
  const std::byte* lastingValue(const Step& step) const;
  void compute(const Step& step, const std::byte* received, std::byte* outgoing);

  transport::Ports* ports_;
  RoundSource rounds_;
  Operands operands_;
  Program program_;
  std::vector<std::byte> scratch_;
  std::size_t nextStep_ = 0;
  int roundsMade_ = 0;
  bool allDone_ = false;  // but perhaps not flushed
  std::vector<Opened<transport::SendPort>> sends_;
  std::vector<Opened<transport::ReceivePort>> receives_;
  transport::ReceivePort* stuckOn_ = nullptr;
  transport::SendPort* stuckOnCredit_ = nullptr;
  std::unique_ptr<TransferWatch> watch_;
};

}  // namespace falcon::collectives
