// What a sweep injects: kinds of slowness at several strengths. Pure.
#pragma once

#include <string>
#include <vector>

#include "demo/schedule.h"

namespace falcon::injections {

enum class CellKind {
  link,  ///< one way
  linkBothWays,
  interface,  ///< every link of a rank, both ways
  rank,
  contention,  ///< this machine's cores taken from outside
  none
};
/// "link", "link-both-ways", "nic", "rank", "contention", "none".
const char* nameOf(CellKind kind);

struct Cell {
  CellKind kind = CellKind::none;
  double factor = 1;  ///< how many times slower; 1 where nothing is to be said of it
  auto operator<=>(const Cell&) const = default;
  bool isOfLinks() const { return kind <= CellKind::interface; }
};

/// All of them; links in the order of their exchange's share, so that few jobs are needed.
std::vector<Cell> allCells();
/// Those that the words name: "link:1.5" one, "link" all of its kind, "all". Throws std::invalid_argument that names
/// the word and what there is.
std::vector<Cell> cellsNamed(const std::vector<std::string>& words);

/// What the exchange shall take of an iteration: two thirds where links are little slower, so that iterations show it.
double exchangeShare(const Cell& cell);

struct Victims {
  std::vector<Culprit> slow;    ///< who is slowed
  std::vector<Culprit> needed;  ///< of them, who has to be named: of an interface the links that much goes over
};
/// The `number`th victims of a cell: others each time, the same in every run.
/// @param host  this machine's name
Victims victimsOf(const Cell& cell, int number, const demo::JobShape& shape, const std::string& host);

}  // namespace falcon::injections
