#include "train/markov_source.h"

#include "train/counter_random.h"

namespace falcon::train {

namespace {
enum Purpose : std::uint64_t { chain = 1, start = 2, step = 3 };
}

std::int32_t MarkovSource::successor(std::int32_t token, double chance) const {
  const int choice = chance < 0.5 ? 0 : chance < 0.75 ? 1 : chance < 0.9 ? 2 : 3;
  return static_cast<std::int32_t>(keyOf(seed_, chain, token, choice) % static_cast<std::uint64_t>(vocabulary_));
}

MicroBatch MarkovSource::batch(std::uint64_t iteration, int index, int sequences, int length) const {
  MicroBatch batch;
  batch.inputs.reserve(static_cast<std::size_t>(sequences) * length);
  batch.targets.reserve(static_cast<std::size_t>(sequences) * length);
  for (int sequence = 0; sequence < sequences; ++sequence) {
    auto token = static_cast<std::int32_t>(keyOf(seed_, start, iteration, index, sequence) %
                                           static_cast<std::uint64_t>(vocabulary_));
    for (int position = 0; position < length; ++position) {
      batch.inputs.push_back(token);
      token = successor(token, uniform(keyOf(seed_, step, iteration, index, sequence, position)));
      batch.targets.push_back(token);
    }
  }
  return batch;
}

}  // namespace falcon::train
