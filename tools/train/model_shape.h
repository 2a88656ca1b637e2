// The sizes of the model, and which part of it a rank holds.
#pragma once

namespace falcon::train {

struct ModelShape {
  int layers = 4;
  int hidden = 128;
  int heads = 4;
  int sequence = 64;
  int vocabulary = 256;
  int microBatchSize = 4;  ///< sequences in one micro-batch

  int tokens() const { return microBatchSize * sequence; }
  int headSize() const { return hidden / heads; }
  int inner() const { return 4 * hidden; }
};

/// One of `count` equal parts.
struct Shard {
  int index = 0;
  int count = 1;
};

}  // namespace falcon::train
