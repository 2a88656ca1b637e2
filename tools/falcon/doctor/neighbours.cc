#include "doctor/neighbours.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace falcon::doctor {
namespace {

/// Empty where nobody is meant.
std::vector<Rank> ranksCalled(const std::string& word, const std::vector<validate::RankSite>& sites) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < sites.size(); ++i)
    if (word == sites[i].host || word == sites[i].node || word == sites[i].address || word == std::to_string(i))
      ranks.push_back(static_cast<Rank>(i));
  return ranks;
}

}  // namespace

Result<std::vector<Neighbours>> parseNeighbours(const std::string& text, const std::vector<validate::RankSite>& sites) {
  std::vector<Neighbours> groups;
  std::set<Rank> taken;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    line.resize(std::min(line.find('#'), line.size()));
    Neighbours group{"line " + std::to_string(number), {}};
    std::istringstream words(line);
    bool first = true;
    for (std::string word; words >> word; first = false) {
      if (first && word.size() > 1 && word.back() == ':') {
        group.name = word.substr(0, word.size() - 1);
        continue;
      }
      const auto called = ranksCalled(word, sites);
      if (called.empty())
        return Error::invalidArgument("line {}: {} is no rank (0 to {}), host, node or address of this job", number,
                                      word, sites.size() - 1);
      for (const Rank rank : called) {
        if (!taken.insert(rank).second)
          return Error::invalidArgument("line {}: {}: rank {} is under a switch already", number, word, rank);
        group.ranks.push_back(rank);
      }
    }
    if (group.ranks.empty()) continue;
    std::sort(group.ranks.begin(), group.ranks.end());
    groups.push_back(std::move(group));
  }
  if (groups.empty())
    return Error::invalidArgument("it names nobody: write a line for each switch, with its ranks or hosts");
  return groups;
}

}  // namespace falcon::doctor
