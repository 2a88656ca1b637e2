#include "doctor/links_to_test.h"

#include <algorithm>
#include <string>

namespace falcon::doctor {
namespace {

struct Node {
  std::string name;
  std::vector<Rank> ranks;
  std::vector<Rank> atAddresses;  // the lowest rank of each address
};

std::vector<Node> nodesOf(const std::vector<validate::RankSite>& sites) {
  std::vector<Node> nodes;
  for (Rank rank = 0; rank < static_cast<Rank>(sites.size()); ++rank) {
    const auto& site = sites[static_cast<std::size_t>(rank)];
    auto node = std::find_if(nodes.begin(), nodes.end(), [&](const Node& other) { return other.name == site.node; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), {site.node, {}, {}});
    node->ranks.push_back(rank);
    const bool known = std::any_of(node->atAddresses.begin(), node->atAddresses.end(), [&](Rank other) {
      return sites[static_cast<std::size_t>(other)].address == site.address;
    });
    if (!known) node->atAddresses.push_back(rank);
  }
  return nodes;
}

}  // namespace

std::vector<Link> linksToTest(const std::vector<validate::RankSite>& sites) {
  std::vector<Link> links;
  const auto addBoth = [&](Rank a, Rank b) {
    links.push_back({a, b});
    links.push_back({b, a});
  };
  const auto addBetween = [&](const Node& a, const Node& b) {
    const auto count = std::max(a.atAddresses.size(), b.atAddresses.size());
    for (std::size_t i = 0; i < count; ++i)
      addBoth(a.atAddresses[i % a.atAddresses.size()], b.atAddresses[i % b.atAddresses.size()]);
  };
  const auto nodes = nodesOf(sites);
  for (const Node& node : nodes)
    for (std::size_t a = 0; a < node.ranks.size(); ++a)
      for (std::size_t b = a + 1; b < node.ranks.size(); ++b) addBoth(node.ranks[a], node.ranks[b]);
  if (nodes.size() <= mostNodesInPairs) {
    for (std::size_t a = 0; a < nodes.size(); ++a)
      for (std::size_t b = a + 1; b < nodes.size(); ++b) addBetween(nodes[a], nodes[b]);
  } else {
    for (std::size_t a = 0; a < nodes.size(); ++a) addBetween(nodes[a], nodes[(a + 1) % nodes.size()]);
  }
  return links;
}

}  // namespace falcon::doctor
