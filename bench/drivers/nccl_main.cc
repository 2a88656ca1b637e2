// Ours, through nccl.h as any user calls it. Started by `falcon run`.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "nccl.h"
#include "serve.h"

namespace falcon::bench {
namespace {

void must(ncclResult_t result) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s: %s\n", ncclGetErrorString(result), ncclGetLastError(nullptr));
  std::exit(1);
}

int number(const char* name) {
  const char* text = std::getenv(name);
  if (text) return std::atoi(text);
  std::fprintf(stderr, "%s is not set: start this program with falcon run\n", name);
  std::exit(2);
}

class Nccl : public Library {
 public:
  Nccl() : rank_(number("RANK")), ranks_(number("WORLD_SIZE")) {
    const std::string address = std::string(std::getenv("MASTER_ADDR")) + ':' + std::getenv("MASTER_PORT");
    setenv("NCCL_COMM_ID", address.c_str(), 0);
    ncclUniqueId id;
    must(ncclGetUniqueId(&id));
    must(ncclCommInitRank(&communicator_, ranks_, id, rank_));
  }
  ~Nccl() override {
    must(ncclCommFinalize(communicator_));
    must(ncclCommDestroy(communicator_));
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::function<void()> prepare(Collective collective, const Shape& shape, const Buffers& buffers) override {
    const ncclComm_t comm = communicator_;
    const std::size_t count = shape.block;
    const float* send = buffers.send;
    float* receive = buffers.receive;
    constexpr ncclDataType_t type = ncclFloat32;
    switch (collective) {
      case Collective::allReduce:
        return [=] { must(ncclAllReduce(send, receive, count, type, ncclSum, comm, nullptr)); };
      case Collective::allGather:
        return [=] { must(ncclAllGather(send, receive, count, type, comm, nullptr)); };
      case Collective::reduceScatter:
        return [=] { must(ncclReduceScatter(send, receive, count, type, ncclSum, comm, nullptr)); };
      case Collective::broadcast:
        if (rank_ == 0) std::copy_n(send, shape.receive, receive);
        return [=] { must(ncclBroadcast(receive, receive, count, type, 0, comm, nullptr)); };
      case Collective::reduce:
        return [=] { must(ncclReduce(send, receive, count, type, ncclSum, 0, comm, nullptr)); };
      case Collective::allToAll:
        return [=] { must(ncclAlltoAll(send, receive, count, type, comm, nullptr)); };
      case Collective::gather:
        return [=] { must(ncclGather(send, receive, count, type, 0, comm, nullptr)); };
      case Collective::scatter:
        return [=] { must(ncclScatter(send, receive, count, type, 0, comm, nullptr)); };
      case Collective::sendReceive:
        break;
    }
    const int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
    return [=] {
      must(ncclGroupStart());
      must(ncclSend(send, count, type, next, comm, nullptr));
      must(ncclRecv(receive, count, type, previous, comm, nullptr));
      must(ncclGroupEnd());
    };
  }

  double maximum(double value) override {
    double highest = 0;
    must(ncclAllReduce(&value, &highest, 1, ncclFloat64, ncclMax, communicator_, nullptr));
    return highest;
  }
  void barrier() override { maximum(0); }

 private:
  int rank_, ranks_;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace
}  // namespace falcon::bench

int main(int argc, char** argv) {
  falcon::bench::Nccl library;
  return falcon::bench::serve(library, argc, argv);
}
