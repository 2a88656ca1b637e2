// What part of hybrid parallelism a communicator serves, from its shape and traffic alone.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/types.h"

namespace falcon::instrument {

enum class CommunicatorRole : std::uint8_t { unknown, data, pipeline, tensor, job };
/// "unknown", "data parallel", "pipeline", "tensor parallel", "whole job".
const char* nameOf(CommunicatorRole role);

/// A communicator and what one of its ranks does with it in an iteration; the mean over its ranks.
struct CommunicatorShape {
  CommunicatorId communicator = 0;
  std::vector<Rank> members;  ///< job ranks by rank of the communicator
  double collectives = 0;     ///< calls
  double messages = 0;        ///< sends and receives
  double bytes = 0;           ///< of both; 0: unknown
  /// By the layout that the framework registered; unknown: by what it looks like.
  CommunicatorRole registered = CommunicatorRole::unknown;
};

/// - Mostly messages: a pipeline.
/// - Everybody, beside smaller communicators: the whole job (a barrier, a norm, a loss).
/// - Else collectives: tensor groups work within every layer, data groups sum gradients once; so of two kinds that both
///   cover the job, the one with more calls is the tensor groups. Of one kind alone, they are tensor groups when they
///   make as many calls as a pipeline sends messages; where there are no pipelines, when they are neighbours and not
///   everybody (frameworks number tensor shards first). Others are data groups.
/// A registered role goes before all that. Unknown are: unused communicators; collectives inside of one pipeline (tied
/// embeddings); and kinds of groups that do not cover the job, where another kind does.
std::map<CommunicatorId, CommunicatorRole> inferRoles(std::span<const CommunicatorShape> communicators);

/// Ranks that do equal work: they share data or tensor groups, directly or through others: a pipeline's stages. Ranks
/// of no such group are in none. Each sorted; in the order of their lowest ranks.
std::vector<std::vector<Rank>> ranksOfEqualWork(std::span<const CommunicatorShape> communicators,
                                                const std::map<CommunicatorId, CommunicatorRole>& roles);

}  // namespace falcon::instrument
