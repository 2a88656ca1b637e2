// What an algorithm is made of: steps that move or reduce one chunk. Algorithms only write lists of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "transport/ports.h"

namespace falcon::collectives {

/// Where a step's local operand is. Scratch: memory of this rank's own, for what a round has to keep besides.
enum class Where : std::uint8_t { none, input, output, scratch };

/// One chunk's worth of work, at most one receive and at most one send, in this order:
///   value = received chunk (receiveFrom >= 0), else the chunk at `source`;
///   (what comes from the input is multiplied first where the reduction is preMulSum)
///   if received and source != none: value = reduce(received, chunk at source), with ownFirst the other way round;
///   if destination != none: value is written there;
///   if sendTo >= 0: value is sent on.
/// Offsets and counts are in elements of the call's type. A step is done when all its parts are.
struct Step {
  Rank receiveFrom = -1;
  Rank sendTo = -1;
  Where source = Where::none;
  Where destination = Where::none;
  bool ownFirst = false;  ///< where ranks reduce the same they must do it in the same order
  bool last = false;      ///< value is final: avg divides here, before it is written and sent
  std::size_t sourceOffset = 0;
  std::size_t destinationOffset = 0;
  std::size_t count = 0;
};

/// Appends `step`, whose offsets and count are of more than one chunk, chunk by chunk.
inline void appendChunks(const Step& step, std::size_t chunk, std::vector<Step>& steps) {
  for (std::size_t done = 0; done < step.count; done += chunk) {
    Step& piece = steps.emplace_back(step);
    piece.sourceOffset += done;
    piece.destinationOffset += done;
    piece.count = std::min(chunk, step.count - done);
  }
}

/// `other` gets this rank's input of `step`'s range, and sends back what it makes of it.
inline void appendThereAndBack(Rank other, Step step, std::vector<Step>& steps) {
  Step back = step;
  step.source = Where::input;
  step.sendTo = other;
  back.receiveFrom = other;
  back.destination = Where::output;
  steps.push_back(step);
  steps.push_back(back);
}

/// The steps of one rank on one channel, in order.
struct Program {
  int channel = 0;
  transport::Lane lane = transport::Lane::ring;
  std::vector<Step> steps;
};

}  // namespace falcon::collectives
