// Training data from a seed: a Markov chain in which every token has four likely successors. A model that learns the
// chain gets from log(vocabulary) down to its entropy of about 1.2 nats a token.
#pragma once

#include <cstdint>

#include "train/micro_batch.h"

namespace falcon::train {

class MarkovSource {
 public:
  MarkovSource(std::uint64_t seed, int vocabulary) : seed_(seed), vocabulary_(vocabulary) {}

  /// Global micro-batch `index` of an iteration; the same for every rank and every split.
  MicroBatch batch(std::uint64_t iteration, int index, int sequences, int length) const;

 private:
  std::int32_t successor(std::int32_t token, double chance) const;

  std::uint64_t seed_;
  int vocabulary_;
};

}  // namespace falcon::train
