// Ranks by phases, as coloured cells.
#pragma once

#include <string>
#include <vector>

namespace falcon::report_page {

struct HeatMap {
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<std::vector<double>> shares;  ///< [row][column], 0 to 1; below 0: not measured, and left blank
};

/// The number is the share; the colour is how far it is from the column's median: red above, blue below.
std::string heatMapSvg(const HeatMap& map);

}  // namespace falcon::report_page
