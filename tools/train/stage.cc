#include "train/stage.h"

namespace falcon::train {

template <class Real>
Stage<Real>::Stage(const ModelShape& shape, std::uint64_t seed, Shard pipeline, Shard tensor, int slots,
                   Reducer<Real>& reducer)
    : shape_(shape), slots_(slots) {
  if (pipeline.index == 0) embedding_.emplace(shape, buckets_.emplace_back(seed, tensor));
  const int firstLayer = pipeline.index * shape.layers / pipeline.count;
  const int endLayer = (pipeline.index + 1) * shape.layers / pipeline.count;
  for (int layer = firstLayer; layer < endLayer; ++layer) {
    auto& bucket = buckets_.emplace_back(seed, tensor);
    blocks_.push_back(std::make_unique<Block<Real>>(shape, layer, tensor, bucket, reducer));
  }
  if (pipeline.index == pipeline.count - 1) head_.emplace(shape, buckets_.emplace_back(seed, tensor));
  for (Slot& slot : slots_) slot.blocks.resize(blocks_.size());
}

template <class Real>
double Stage<Real>::forward(int slot, const MicroBatch& batch, Real* x) {
  if (embedding_) embedding_->forward(batch, x);
  for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i]->forward(x, slots_[slot].blocks[i], scratch_);
  return head_ ? head_->forward(x, batch, slots_[slot].head) : 0;
}

template <class Real>
void Stage<Real>::backward(int slot, const MicroBatch& batch, double scale, Real* gradient,
                           const std::function<void(std::size_t)>& bucketDone) {
  std::size_t bucket = buckets_.size();
  if (head_) {
    head_->backward(batch, slots_[slot].head, scale, gradient);
    bucketDone(--bucket);
  }
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    blocks_[i]->backward(gradient, slots_[slot].blocks[i], scratch_);
    bucketDone(--bucket);
  }
  if (embedding_) {
    embedding_->backward(batch, gradient);
    bucketDone(--bucket);
  }
}

template <class Real>
std::size_t Stage<Real>::parameterCount() const {
  std::size_t count = 0;
  for (const auto& bucket : buckets_) count += bucket.count();
  return count;
}

template class Stage<float>;
template class Stage<double>;

}  // namespace falcon::train
