#include "injections/shaped_links.h"

#include <stdexcept>

namespace falcon::injections {
namespace {

void orThrow(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message());
}

}  // namespace

Link neighboursOf(Rank rank, const demo::JobShape& shape) {
  const int stages = shape.pipelineParallel, replicas = shape.dataParallel;
  const int stage = rank % stages, replica = rank / stages;
  return {(replica + replicas - 1) % replicas * stages + stage, (replica + 1) % replicas * stages + stage};
}

ShapedLinks::ShapedLinks(const tools::JobDescription& job, const demo::JobShape& shape, double bitsPerSecond)
    : bitsPerSecond_(bitsPerSecond) {
  for (Rank from = 0; from < shape.ranks; ++from) {
    for (Rank to = from % shape.pipelineParallel; to < shape.ranks; to += shape.pipelineParallel) {
      if (to == from) continue;
      const auto sender = tools::rankOf(job, from), receiver = tools::rankOf(job, to);
      if (!sender || !receiver || sender->netNamespace.empty())
        throw std::runtime_error("the job's ranks have no links of their own here");
      const auto limit = limits_.try_emplace(Link{from, to}, *sender, *receiver, bitsPerSecond).first;
      orThrow(limit->second.apply());
    }
  }
}

void ShapedLinks::slow(Link link, double factor) {
  tools::TrafficLimit& limit = limits_.at(link);
  limit.setRate(bitsPerSecond_ / factor);
  orThrow(limit.change());
}

double ShapedLinks::bytes(Link link) const {
  const auto traffic = limits_.at(link).traffic();
  if (!traffic) throw std::runtime_error(traffic.error().message());
  return static_cast<double>(traffic->bytes);
}

}  // namespace falcon::injections
