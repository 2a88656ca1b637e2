// Where calls run: how many ranks, how they are spread over processes, and what the environment tells the library.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "choices.h"

namespace falcon::property {

enum class Over {
  memory,   ///< reading each other's memory, the default inside a node
  shared,   ///< shared memory only
  sockets,  ///< sockets only
  nodes,    ///< two nodes: shared memory inside, sockets between
  plugin,   ///< a net plugin only
  plugins   ///< two nodes: shared memory inside, a net plugin between
};
inline constexpr Over allTransports[] = {Over::memory, Over::shared, Over::sockets,
                                         Over::nodes,  Over::plugin, Over::plugins};
inline constexpr int rankCounts[] = {1, 2, 3, 4, 5, 7, 8, 16};

/// In the place of a version: falcon-socket, by the newest that it has.
inline constexpr int ourPlugin = 13;

struct World {
  int ranks = 2;
  int processes = 2;  ///< rank r lives in process r % processes
  Over over = Over::memory;
  int pluginVersion = 12;       ///< where there is a plugin: of a fake one, or ourPlugin
  std::size_t bufferBytes = 0;  ///< 0: the default
  int channels = 0;             ///< 0: the default
  std::string algorithm;        ///< "": the library's choice
  bool byVariable = false;      ///< NCCL_ALGO names the algorithm, else a tuning file does
  bool streams = false;         ///< calls are queued on a host stream, several before it is waited for
  bool checksCalls = false;
  /// Communicators, each used by a thread of its own on every rank at the same time: all ranks, all ranks in another
  /// order, and the even and odd ranks by themselves.
  int lanes = 1;

  int processOf(int rank) const { return rank % processes; }
  bool hasPlugin() const { return over == Over::plugin || over == Over::plugins; }
  bool hasTwoNodes() const { return over == Over::nodes || over == Over::plugins; }
  /// What the connections' chunks hold.
  std::size_t chunkBytes() const { return (bufferBytes ? bufferBytes : 1 << 20) / 8; }
  /// `tuningFile`: the path of one that names the algorithm.
  std::vector<std::pair<std::string, std::string>> environment(int process, const std::string& tuningFile) const;
  std::string text() const;
};

World drawWorld(Choices& choices);
/// Every count of ranks, transport and algorithm; spreads, and the ways to ask for an algorithm and to make the calls,
/// in turn.
std::vector<World> allWorlds();

}  // namespace falcon::property
