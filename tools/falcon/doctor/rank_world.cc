#include "doctor/rank_world.h"

#include <cstdlib>

#include "base/format.h"
#include "bootstrap/make_unique_id.h"

namespace falcon::doctor {
namespace {

const char* text(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

Result<std::shared_ptr<bootstrap::CommunicatorNetwork>> joinNetwork(
    const std::shared_ptr<transport::Reactor>& reactor) {
  const int size = *text("RANK") ? std::atoi(text("WORLD_SIZE")) : 1;
  if (size == 1) return bootstrap::aloneNetwork();
  if (!*text("MASTER_ADDR") || !*text("MASTER_PORT"))
    return Error::invalidUsage(
        "RANK is set but MASTER_ADDR and MASTER_PORT are not; start the ranks by `falcon run`, or use -n");
  if (!*text("NCCL_COMM_ID"))
    setenv("NCCL_COMM_ID", fmt::format("{}:{}", text("MASTER_ADDR"), text("MASTER_PORT")).c_str(), 1);
  const auto id = bootstrap::makeUniqueId();
  if (!id) return id.error();
  return bootstrap::join(reactor, *id, std::atoi(text("RANK")), size, joinLimit);
}

Result<std::unique_ptr<collectives::HostCommunicator>> communicatorOver(
    const std::shared_ptr<transport::Reactor>& reactor, std::shared_ptr<bootstrap::CommunicatorNetwork> network) {
  return collectives::HostCommunicator::create(reactor, std::move(network), 0, {}, "");
}

}  // namespace

std::vector<validate::RankSite> RankWorld::sites() const {
  std::vector<validate::RankSite> sites;
  for (const auto& member : communicator->members())
    sites.push_back({member.peer.node, member.peer.address.host(), member.host});
  return sites;
}

Result<RankWorld> joinWorld() {
  auto reactor = transport::processReactor();
  if (!reactor) return reactor.error();
  auto network = joinNetwork(*reactor);
  if (!network) return network.error();
  auto communicator = communicatorOver(*reactor, std::move(*network));
  if (!communicator) return communicator.error();
  return RankWorld{std::move(*reactor), std::move(*communicator)};
}

Result<std::unique_ptr<collectives::HostCommunicator>> partOf(const RankWorld& world, int colour) {
  auto network = world.network().split(colour, world.rank(), stepLimit);
  if (!network) return network.error();
  if (!*network) return std::unique_ptr<collectives::HostCommunicator>();
  return communicatorOver(world.reactor, std::move(*network));
}

Result<double> timeAllReduce(collectives::HostCommunicator& communicator, std::vector<float>& values) {
  Call call;
  call.operation = Operation::allReduce;
  call.reduction = ReduceOp::max;  // the values stay small however often
  call.send = call.receive = values.data();
  call.count = values.size();
  const auto& clock = SystemClock::instance();
  const auto start = clock.now();
  if (const auto done = communicator.run(call); !done) return done.error();
  return seconds(clock.now() - start);
}

}  // namespace falcon::doctor
