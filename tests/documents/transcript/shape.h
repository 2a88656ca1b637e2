// What stays of a sentence when all that differs from run to run is taken out.
#pragma once

#include <string>
#include <vector>

namespace falcon::documents {

/// Numbers, times, rates, rank lists, links, ring orders, splits, addresses and hosts become marks: "ring <order>",
/// "held for <time>". One and many read alike: "1 ring" as "7 rings".
std::string shapeOf(const std::string& text);

/// The shapes of a text's clauses, which commas, semicolons, colons and brackets part: lists may be longer or shorter,
/// and a clause may be there or not.
std::vector<std::string> clausesOf(const std::string& text);

}  // namespace falcon::documents
