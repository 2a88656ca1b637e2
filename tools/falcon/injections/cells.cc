#include "injections/cells.h"

#include <algorithm>
#include <stdexcept>

#include "base/format.h"
#include "injections/shaped_links.h"

namespace falcon::injections {
namespace {

constexpr CellKind kinds[] = {CellKind::link, CellKind::linkBothWays, CellKind::interface,
                              CellKind::rank, CellKind::contention,   CellKind::none};

std::vector<double> factorsOf(CellKind kind) {
  if (kind == CellKind::rank) return {1.2, 1.3, 1.5, 2, 3};
  if (kind == CellKind::contention || kind == CellKind::none) return {1};
  return {1.2, 1.3, 1.5, 2, 3, 5};
}

std::string nameOf(const Cell& cell) {
  return cell.factor > 1 ? fmt::format("{}:{}", nameOf(cell.kind), cell.factor) : nameOf(cell.kind);
}

}  // namespace

const char* nameOf(CellKind kind) {
  switch (kind) {
    case CellKind::link:
      return "link";
    case CellKind::linkBothWays:
      return "link-both-ways";
    case CellKind::interface:
      return "nic";
    case CellKind::rank:
      return "rank";
    case CellKind::contention:
      return "contention";
    case CellKind::none:
      return "none";
  }
  return "?";
}

std::vector<Cell> allCells() {
  std::vector<Cell> cells;
  for (const CellKind kind : kinds)
    for (const double factor : factorsOf(kind)) cells.push_back({kind, factor});
  std::stable_sort(cells.begin(), cells.end(),
                   [](const Cell& one, const Cell& other) { return exchangeShare(one) > exchangeShare(other); });
  return cells;
}

std::vector<Cell> cellsNamed(const std::vector<std::string>& words) {
  const std::vector<Cell> all = allCells();
  std::vector<Cell> cells;
  for (const std::string& word : words) {
    const std::size_t before = cells.size();
    std::copy_if(all.begin(), all.end(), std::back_inserter(cells),
                 [&](const Cell& cell) { return word == "all" || word == nameOf(cell.kind) || word == nameOf(cell); });
    if (cells.size() > before) continue;
    std::string known = "all";
    for (const Cell& cell : all) known += ", " + nameOf(cell);
    throw std::invalid_argument(
        fmt::format("--cells {}: there is no such cell; give a kind, or a kind and a factor, of {}", word, known));
  }
  std::vector<Cell> inOrder = all;
  std::erase_if(inOrder, [&](const Cell& cell) { return std::find(cells.begin(), cells.end(), cell) == cells.end(); });
  return inOrder;
}

double exchangeShare(const Cell& cell) {
  return cell.isOfLinks() && cell.factor < 1.5 ? 2.0 / 3 : 1.0 / 3;
}

Victims victimsOf(const Cell& cell, int number, const demo::JobShape& shape, const std::string& host) {
  const Rank rank = (3 * number + 1) % shape.ranks;
  const Link neighbours = neighboursOf(rank, shape);
  const auto link = [&](Rank to, bool bothWays) {
    return Culprit{.kind = CulpritKind::link, .link = {rank, to}, .bothWays = bothWays};
  };
  Victims victims;
  switch (cell.kind) {
    case CellKind::link:
    case CellKind::linkBothWays:
      victims.needed = {link(neighbours.to, cell.kind == CellKind::linkBothWays)};
      break;
    case CellKind::interface:
      victims.needed = {link(neighbours.from, true), link(neighbours.to, true)};
      for (Rank other = rank % shape.pipelineParallel; other < shape.ranks; other += shape.pipelineParallel)
        if (other != rank && other != neighbours.from && other != neighbours.to)
          victims.slow.push_back(link(other, true));
      break;
    case CellKind::rank:
      victims.needed = {{.kind = CulpritKind::rank, .rank = rank}};
      break;
    case CellKind::contention:
      victims.needed = {{.kind = CulpritKind::host, .host = host}};
      break;
    case CellKind::none:
      break;
  }
  victims.slow.insert(victims.slow.begin(), victims.needed.begin(), victims.needed.end());
  return victims;
}

}  // namespace falcon::injections
