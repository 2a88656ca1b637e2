// Gloo over TCP, which is all it has between processes on CPUs. Started by `falcon run`; the ranks find each other
// through files in BENCH_GLOO_STORE. What Gloo lets its users set up once (options, buffers) is set up once.
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <vector>

#include "serve.h"

namespace falcon::bench {
namespace {

const char* needed(const char* name) {
  if (const char* text = std::getenv(name)) return text;
  std::fprintf(stderr, "%s is not set: start this program with falcon run, through scripts/bench\n", name);
  std::exit(2);
}

using ReduceFunction = void (*)(void*, const void*, const void*, std::size_t);
constexpr ReduceFunction sum = &gloo::sum<float>;
constexpr ReduceFunction max = &gloo::max<double>;

class Gloo : public Library {
 public:
  Gloo() : rank_(std::atoi(needed("RANK"))), ranks_(std::atoi(needed("WORLD_SIZE"))) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank_, ranks_);
    gloo::rendezvous::FileStore store(needed("BENCH_GLOO_STORE"));
    context->connectFullMesh(store, device);
    context_ = context;
    const char* algorithm = std::getenv("BENCH_GLOO_ALGORITHM");
    bcube_ = algorithm && std::strcmp(algorithm, "bcube") == 0;
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::function<void()> prepare(Collective collective, const Shape& shape, const Buffers& buffers) override {
    float* send = buffers.send;
    float* receive = buffers.receive;
    switch (collective) {
      case Collective::allReduce: {
        auto options = std::make_shared<gloo::AllreduceOptions>(context_);
        options->setInput(send, shape.send);
        options->setOutput(receive, shape.receive);
        options->setReduceFunction(sum);
        options->setAlgorithm(bcube_ ? gloo::AllreduceOptions::Algorithm::BCUBE
                                     : gloo::AllreduceOptions::Algorithm::RING);
        return [options] { gloo::allreduce(*options); };
      }
      case Collective::allGather: {
        auto options = std::make_shared<gloo::AllgatherOptions>(context_);
        options->setInput(send, shape.send);
        options->setOutput(receive, shape.receive);
        return [options] { gloo::allgather(*options); };
      }
      case Collective::reduceScatter:
        return prepareReduceScatter(shape, buffers);
      case Collective::broadcast: {
        if (rank_ == 0) std::copy_n(send, shape.receive, receive);
        auto options = std::make_shared<gloo::BroadcastOptions>(context_);
        options->setOutput(receive, shape.receive);
        options->setRoot(0);
        return [options] { gloo::broadcast(*options); };
      }
      case Collective::reduce: {
        auto options = std::make_shared<gloo::ReduceOptions>(context_);
        options->setInput(send, shape.send);
        options->setOutput(receive, shape.receive);
        options->setReduceFunction(sum);
        options->setRoot(0);
        return [options] { gloo::reduce(*options); };
      }
      case Collective::allToAll: {
        auto options = std::make_shared<gloo::AlltoallOptions>(context_);
        options->setInput(send, shape.send);
        options->setOutput(receive, shape.receive);
        return [options] { gloo::alltoall(*options); };
      }
      case Collective::gather: {
        auto options = std::make_shared<gloo::GatherOptions>(context_);
        options->setInput(send, shape.send);
        if (rank_ == 0) options->setOutput(receive, shape.receive);
        options->setRoot(0);
        return [options] { gloo::gather(*options); };
      }
      case Collective::scatter: {
        auto options = std::make_shared<gloo::ScatterOptions>(context_);
        std::vector<float*> blocks;
        for (int peer = 0; rank_ == 0 && peer < ranks_; ++peer)
          blocks.push_back(send + static_cast<std::size_t>(peer) * shape.block);
        if (rank_ == 0) options->setInputs(blocks, shape.block);
        options->setOutput(receive, shape.receive);
        options->setRoot(0);
        return [options] { gloo::scatter(*options); };
      }
      case Collective::sendReceive:
        return prepareSendReceive(shape, buffers);
    }
    return {};
  }

  double maximum(double value) override {
    gloo::AllreduceOptions options(context_);
    options.setOutput(&value, 1);
    options.setReduceFunction(max);
    options.setTag(ownTag);
    gloo::allreduce(options);
    return value;
  }

  void barrier() override {
    gloo::BarrierOptions options(context_);
    options.setTag(ownTag);
    gloo::barrier(options);
  }

 private:
  static constexpr std::uint32_t ownTag = 7;
  static constexpr std::uint64_t sendReceiveSlot = 1 << 20;

  /// Gloo's only one works on the send buffer and leaves the result there, in chunks that are the ranks' blocks if
  /// their number is a power of two. It is checked before it overwrites its input, so no copy of ours slows it.
  std::function<void()> prepareReduceScatter(const Shape& shape, const Buffers& buffers) {
    const std::vector<int> blocks(static_cast<std::size_t>(ranks_), static_cast<int>(shape.block));
    auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context_, std::vector<float*>{buffers.send}, static_cast<int>(shape.send), blocks);
    bool first = true;
    return [=]() mutable {
      algorithm->run();
      if (first) std::copy_n(buffers.send, shape.receive, buffers.receive);
      first = false;
    };
  }

  std::function<void()> prepareSendReceive(const Shape& shape, const Buffers& buffers) {
    const int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
    std::shared_ptr<gloo::transport::UnboundBuffer> out =
        context_->createUnboundBuffer(buffers.send, shape.send * sizeof(float));
    std::shared_ptr<gloo::transport::UnboundBuffer> in =
        context_->createUnboundBuffer(buffers.receive, shape.receive * sizeof(float));
    return [=] {
      in->recv(previous, sendReceiveSlot);
      out->send(next, sendReceiveSlot);
      in->waitRecv();
      out->waitSend();
    };
  }

  int rank_, ranks_;
  bool bcube_ = false;
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace
}  // namespace falcon::bench

int main(int argc, char** argv) {
  try {
    falcon::bench::Gloo library;
    return falcon::bench::serve(library, argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gloo: %s\n", error.what());
    return 1;
  }
}
