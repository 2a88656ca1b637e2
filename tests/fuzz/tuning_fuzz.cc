// The tuning file, as people write it and as rank 0 sends it to the others.
#include "collectives/tuning.h"

#include <algorithm>

#include "fuzz_target.h"

namespace falcon::fuzz {
namespace {

using collectives::Extent;
using collectives::parseTuning;
using collectives::Tuning;

/// A row as the line that asks for it.
template <class Row>
std::string lineOf(const Row& row, Extent extent) {
  const char* name = row.algorithm ? row.algorithm->name : "messages";
  return format(collectives::TuningLine{row.operation, extent, row.fromRanks, row.fromBytes, row.toBytes, name}) + "\n";
}

void checkRows(const Tuning& tuning, Extent extent) {
  require(tuning.algorithms.size() <= tuning.direct.size(), "every line has a row that says whether it is direct");
  const auto check = [&](const auto& rows) {
    double score = 0;
    for (const auto& row : rows) {
      require(row.fromBytes < row.toBytes && row.fromRanks >= 2, "a range is one");
      require(row.score > score, "a later line comes first");
      score = row.score;
      // "messages" stands for rings where there are any.
      if (!row.algorithm && !collectives::algorithmsFor(row.operation, Extent::network).empty()) continue;
      const std::string line = lineOf(row, extent);
      require(static_cast<bool>(parseTuning(line, extent)), "what was accepted is accepted again");
    }
  };
  check(tuning.algorithms);
  check(tuning.direct);
}

}  // namespace

std::vector<std::string> seeds() {
  std::string all = "# operation extent ranks from below algorithm\n\n";
  for (int i = 0; i < operationCount; ++i)
    for (const Extent extent : {Extent::node, Extent::network})
      for (const std::string& name : collectives::algorithmsFor(static_cast<Operation>(i), extent))
        all += format(collectives::TuningLine{static_cast<Operation>(i), extent, 2, 4096, 1 << 20, name}) + "\n";
  return {all, "AllReduce node 2 0 64K flat # comment\r\n", "AllGather network 3 1G - doubling", "Send node 2 0 - ring",
          "AllReduce node 2 64K 4K flat\nAllReduce node 1000001 0 - flat x"};
}

void run(std::string_view input) {
  bool accepted[2];
  for (const Extent extent : {Extent::node, Extent::network}) {
    const auto tuning = parseTuning(input, extent);
    accepted[extent == Extent::network] = static_cast<bool>(tuning);
    if (!tuning)
      require(tuning.error().message().starts_with("line "), "a refusal says where");
    else
      checkRows(*tuning, extent);
  }
  require(accepted[0] == accepted[1], "all ranks refuse the same files, wherever they are");
}

}  // namespace falcon::fuzz
