#include "world.h"

#include <algorithm>
#include <set>

#include "algorithms.h"
#include "harness/thoroughness.h"

namespace falcon::property {
namespace {

constexpr std::size_t bufferSizes[] = {4096, 4104, 8192, 20'000, 65'536, 0};

bool isForTheVariable(const std::string& algorithm) {
  return algorithm == "ring" || algorithm == "tree";
}

const char* nameOf(Over over) {
  constexpr const char* names[] = {"memory", "shared", "sockets", "nodes", "a plugin", "nodes with a plugin"};
  return names[static_cast<int>(over)];
}

}  // namespace

std::vector<std::pair<std::string, std::string>> World::environment(int process, const std::string& tuningFile) const {
  std::vector<std::pair<std::string, std::string>> settings{{"NCCL_FALCON", "0"}, {"NCCL_FALCON_ENGINE", "host"}};
  if (over == Over::shared) settings.emplace_back("NCCL_P2P_DISABLE", "1");
  if (over == Over::sockets || over == Over::plugin) settings.emplace_back("NCCL_SHM_DISABLE", "1");
  if (hasTwoNodes()) settings.emplace_back("NCCL_HOSTID", process < (processes + 1) / 2 ? "left" : "right");
  if (hasPlugin()) {
    const bool ours = pluginVersion == ourPlugin;
    settings.emplace_back(
        "NCCL_NET_PLUGIN",
        ours ? FALCON_NET_SOCKET : FALCON_FAKE_NETS "/libnccl-net-fake" + std::to_string(pluginVersion) + ".so");
    settings.emplace_back("NCCL_NET", ours ? "falcon-socket" : "fake");
    if (ours) settings.emplace_back("NCCL_SOCKET_IFNAME", "lo");  // those of other tests come and go
    if (ours) settings.emplace_back("NCCL_SOCKET_NTHREADS", std::to_string(1 + ranks % 3));
  }
  if (bufferBytes) settings.emplace_back("NCCL_BUFFSIZE", std::to_string(bufferBytes));
  if (channels) settings.emplace_back("NCCL_MIN_NCHANNELS", std::to_string(channels));
  if (channels) settings.emplace_back("NCCL_MAX_NCHANNELS", std::to_string(channels));
  if (!algorithm.empty() && byVariable) settings.emplace_back("NCCL_ALGO", algorithm);
  if (!algorithm.empty() && !byVariable) settings.emplace_back("NCCL_FALCON_TUNING_FILE", tuningFile);
  if (checksCalls) settings.emplace_back("NCCL_FALCON_CHECK", "1");
  return settings;
}

std::string World::text() const {
  std::string text = std::to_string(ranks) + " ranks in " + std::to_string(processes) + " processes, " + nameOf(over);
  if (hasPlugin())
    text += pluginVersion == ourPlugin ? ", falcon-socket" : " of version " + std::to_string(pluginVersion);
  if (bufferBytes) text += ", buffers of " + std::to_string(bufferBytes);
  if (channels) text += ", " + std::to_string(channels) + " channels";
  if (!algorithm.empty()) text += ", algorithm " + algorithm + (byVariable ? " (NCCL_ALGO)" : "");
  if (streams) text += ", on streams";
  if (checksCalls) text += ", calls checked";
  if (lanes > 1) text += ", " + std::to_string(lanes) + " communicators at once";
  return text;
}

World drawWorld(Choices& choices) {
  World world;
  do world.ranks = choices.of(rankCounts);
  while (!test::thorough() && world.ranks > 5);
  const int spreads[] = {world.ranks, world.ranks, 1, std::min(world.ranks, 2), std::min(world.ranks, 3)};
  world.processes = choices.of(spreads);
  world.over = choices.of(allTransports);
  world.pluginVersion = 6 + static_cast<int>(choices.below(8));
  world.bufferBytes = choices.of(bufferSizes);
  world.channels = static_cast<int>(choices.below(5));
  if (choices.oneIn(2)) {
    const auto algorithms = algorithmsOver(world.over);
    world.algorithm = algorithms[choices.below(algorithms.size())];
    world.byVariable = isForTheVariable(world.algorithm) && choices.oneIn(2);
  }
  world.streams = choices.oneIn(3);
  world.checksCalls = choices.oneIn(10);
  if (choices.oneIn(5)) world.lanes = static_cast<int>(2 + choices.below(2));
  return world;
}

std::vector<World> allWorlds() {
  std::vector<World> worlds;
  for (const int ranks : rankCounts)
    for (const Over over : allTransports) {
      // The library's own choice comes in every spread.
      const auto add = [&](const std::string& algorithm, int processes) {
        World world;
        world.ranks = ranks;
        world.processes = processes;
        world.over = over;
        world.pluginVersion = 6 + static_cast<int>(worlds.size() % 8);
        world.algorithm = algorithm;
        world.byVariable = isForTheVariable(algorithm) && worlds.size() % 2;
        world.streams = worlds.size() % 3 == 0;
        // Small buffers: their edges are many, and near.
        world.bufferBytes = worlds.size() % 2 ? 4104 : 4096;
        world.channels = 1 + static_cast<int>(worlds.size() % 4);
        worlds.push_back(world);
      };
      std::vector<int> spreads;
      for (const int processes : std::set{1, 2, ranks})
        if (processes <= ranks && !((over == Over::nodes || over == Over::plugins) && processes == 1))
          spreads.push_back(processes);
      for (const int processes : spreads) add("", processes);
      if (ranks == 1) continue;
      for (const std::string& algorithm : algorithmsOver(over)) add(algorithm, spreads[worlds.size() % spreads.size()]);
    }
  return worlds;
}

}  // namespace falcon::property
