// Any MPI; compiled once with each one's mpicxx.
#include <mpi.h>

#include <algorithm>

#include "serve.h"

namespace falcon::bench {
namespace {

class Mpi : public Library {
 public:
  Mpi(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);  // errors are fatal unless asked otherwise
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~Mpi() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  std::function<void()> prepare(Collective collective, const Shape& shape, const Buffers& buffers) override {
    const MPI_Comm comm = MPI_COMM_WORLD;
    const int count = static_cast<int>(shape.block);
    const float* send = buffers.send;
    float* receive = buffers.receive;
    const MPI_Datatype type = MPI_FLOAT;
    switch (collective) {
      case Collective::allReduce:
        return [=] { MPI_Allreduce(send, receive, count, type, MPI_SUM, comm); };
      case Collective::allGather:
        return [=] { MPI_Allgather(send, count, type, receive, count, type, comm); };
      case Collective::reduceScatter:
        return [=] { MPI_Reduce_scatter_block(send, receive, count, type, MPI_SUM, comm); };
      case Collective::broadcast:
        if (rank_ == 0) std::copy_n(send, shape.receive, receive);
        return [=] { MPI_Bcast(receive, count, type, 0, comm); };
      case Collective::reduce:
        return [=] { MPI_Reduce(send, receive, count, type, MPI_SUM, 0, comm); };
      case Collective::allToAll:
        return [=] { MPI_Alltoall(send, count, type, receive, count, type, comm); };
      case Collective::gather:
        return [=] { MPI_Gather(send, count, type, receive, count, type, 0, comm); };
      case Collective::scatter:
        return [=] { MPI_Scatter(send, count, type, receive, count, type, 0, comm); };
      case Collective::sendReceive:
        break;
    }
    const int next = (rank_ + 1) % ranks_, previous = (rank_ + ranks_ - 1) % ranks_;
    return
        [=] { MPI_Sendrecv(send, count, type, next, 0, receive, count, type, previous, 0, comm, MPI_STATUS_IGNORE); };
  }

  double maximum(double value) override {
    double highest = 0;
    MPI_Allreduce(&value, &highest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return highest;
  }
  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }

 private:
  int rank_ = 0, ranks_ = 1;
};

}  // namespace
}  // namespace falcon::bench

int main(int argc, char** argv) {
  falcon::bench::Mpi library(argc, argv);
  return falcon::bench::serve(library, argc, argv);
}
