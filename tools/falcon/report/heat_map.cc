#include "report/heat_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escaped.h"

namespace falcon::report_page {
namespace {

constexpr double left = 110, top = 96, cellWidth = 84, cellHeight = 24;
constexpr double fullColour = 0.2;  // a fifth of the time more or less than the median

double medianOf(const HeatMap& map, std::size_t column) {
  std::vector<double> values;
  for (const auto& row : map.shares)
    if (row[column] >= 0) values.push_back(row[column]);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[values.size() / 2] + values[(values.size() - 1) / 2]) / 2;
}

}  // namespace

std::string heatMapSvg(const HeatMap& map) {
  const double width = left + cellWidth * static_cast<double>(map.columns.size()) + 70;
  const double height = top + cellHeight * static_cast<double>(map.rows.size()) + 8;
  std::string svg = fmt::format(
      R"(<svg id="heat" viewBox="0 0 {0:.0f} {1:.0f}" style="max-width:{0:.0f}px" role="img" aria-label="ranks by phases">)",
      width, height);
  for (std::size_t c = 0; c < map.columns.size(); ++c)
    svg += fmt::format(R"svg(<text class="tick" transform="translate({:.0f},{}) rotate(-30)">{}</text>)svg",
                       left + cellWidth * (static_cast<double>(c) + 0.3), top - 8, htmlText(map.columns[c]));
  for (std::size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + cellHeight * static_cast<double>(r);
    svg += fmt::format(R"(<text class="tick" x="{}" y="{:.0f}" text-anchor="end">{}</text>)", left - 8, y + 16,
                       htmlText(map.rows[r]));
    for (std::size_t c = 0; c < map.columns.size(); ++c) {
      const double share = map.shares[r][c], x = left + cellWidth * static_cast<double>(c);
      if (share < 0) continue;
      const double apart = share - medianOf(map, c);
      svg += fmt::format(
          R"(<g class="cell"><rect x="{:.0f}" y="{:.0f}" width="{}" height="{}" style="fill:{};fill-opacity:{:.2f}"/><text class="tick" x="{:.0f}" y="{:.0f}" text-anchor="middle">{:.1f} %</text><title>{}, {}</title></g>)",
          x, y, cellWidth - 2, cellHeight - 2, apart > 0 ? "#c0392b" : "#2471a3",
          std::min(1.0, std::abs(apart) / fullColour) * 0.8, x + cellWidth / 2, y + 16, share * 100,
          htmlText(map.rows[r]), htmlText(map.columns[c]));
    }
  }
  return svg + "</svg>";
}

}  // namespace falcon::report_page
