#include "collectives/algorithm.h"
#include "topology/binary_tree.h"

namespace falcon::collectives {
namespace {

// Chunks that go up before the first comes down again: hides the way to the root and back, within a connection's
// credit.
constexpr std::size_t window = 4;

std::size_t treeAllReducePerRound(const Geometry& geometry) {
  return window * geometry.chunk;
}

/// Adds the children's sums to the own input, one child a step; partial sums wait in the output. Then passes the sum
/// up.
void appendUp(const topology::TreeNode& node, Range chunk, std::vector<Step>& steps) {
  Step step;
  step.source = Where::input;
  step.sourceOffset = step.destinationOffset = chunk.begin;
  step.count = chunk.size();
  for (const Rank child : node.down) {
    if (child < 0) continue;
    step.receiveFrom = child;
    step.destination = Where::output;
    steps.push_back(step);
    step.source = Where::output;
  }
  const bool isRoot = node.up < 0;
  if (step.receiveFrom < 0) steps.push_back(step);  // a leaf
  steps.back().last = isRoot;
  if (isRoot) return;
  steps.back().destination = Where::none;
  steps.back().sendTo = node.up;
}

/// The result comes from above (the root has it) and goes on to the children.
void appendDown(const topology::TreeNode& node, Range chunk, std::vector<Step>& steps) {
  Step step;
  step.sourceOffset = step.destinationOffset = chunk.begin;
  step.count = chunk.size();
  step.receiveFrom = node.up;
  if (node.up >= 0) step.destination = Where::output;
  if (node.up < 0) step.source = Where::output;
  bool pending = node.up >= 0;
  for (const Rank child : node.down) {
    if (child < 0) continue;
    step.sendTo = child;
    steps.push_back(step);
    step = {.source = Where::output, .sourceOffset = chunk.begin, .count = chunk.size()};
    pending = false;
  }
  if (pending) steps.push_back(step);
}

void appendTreeAllReduce(const Geometry& geometry, Range round, std::vector<Step>& steps) {
  if (geometry.size == 1) return localCopy.appendRound(geometry, round, steps);
  const topology::TreeNode node = geometry.channel % 2 == 0 ? topology::firstTree(geometry.rank, geometry.size)
                                                            : topology::secondTree(geometry.rank, geometry.size);
  forEachChunk(round, geometry.chunk, [&](Range chunk) { appendUp(node, chunk, steps); });
  forEachChunk(round, geometry.chunk, [&](Range chunk) { appendDown(node, chunk, steps); });
}

}  // namespace

const Algorithm treeAllReduce{"tree", transport::Lane::tree, treeAllReducePerRound, appendTreeAllReduce};

}  // namespace falcon::collectives
