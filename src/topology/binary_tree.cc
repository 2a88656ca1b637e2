#include "topology/binary_tree.h"

#include <bit>

namespace falcon::topology {

TreeNode firstTree(Rank rank, int size) {
  TreeNode node;
  if (size < 2) return node;
  if (rank == 0) {
    node.down[1] = static_cast<Rank>(std::bit_ceil(static_cast<unsigned>(size)) / 2);
    return node;
  }
  const int bit = rank & -rank;
  // 64 bits: with the highest bits set the parent above would not fit.
  const long above = static_cast<long>(rank ^ bit) | (static_cast<long>(bit) << 1);
  node.up = above < size ? static_cast<Rank>(above) : rank ^ bit;
  int low = bit >> 1;
  if (low == 0) return node;
  node.down[0] = rank - low;
  while (low > 0 && rank + low >= size) low >>= 1;
  if (low > 0) node.down[1] = rank + low;
  return node;
}

TreeNode secondTree(Rank rank, int size) {
  const bool odd = size % 2 == 1;
  const auto image = [&](Rank r, int shift) { return odd ? (r + shift + size) % size : size - 1 - r; };
  TreeNode node = firstTree(image(rank, -1), size);
  for (Rank* neighbour : {&node.up, &node.down[0], &node.down[1]})
    if (*neighbour >= 0) *neighbour = image(*neighbour, 1);
  return node;
}

}  // namespace falcon::topology
