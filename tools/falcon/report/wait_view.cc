#include "report/wait_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace falcon::report_page {
namespace {

constexpr double radius = 17, stepX = 96, stepY = 78, gap = 30, top = 46, left = 40;

struct Spot {
  double x = 0, y = 0;
};

// Bent, so that the two directions between two ranks lie apart, and no arrow runs through the ranks between them.
std::string arrow(const Spot& from, const Spot& to, const WaitView::Arrow& what) {
  const double dx = to.x - from.x, dy = to.y - from.y, length = std::max(1.0, std::hypot(dx, dy));
  const double bend = 14 + 0.12 * length;
  const Spot middle{(from.x + to.x) / 2 - dy / length * bend, (from.y + to.y) / 2 + dx / length * bend};
  const double toMiddleX = to.x - middle.x, toMiddleY = to.y - middle.y, rest = std::hypot(toMiddleX, toMiddleY);
  const Spot end{to.x - toMiddleX / rest * (radius + 3), to.y - toMiddleY / rest * (radius + 3)};
  return fmt::format(
      R"svg(<path class="wait" d="M{:.1f},{:.1f} Q{:.1f},{:.1f} {:.1f},{:.1f}" style="fill:none;stroke:#c0392b;stroke-width:{:.1f};stroke-opacity:.65" marker-end="url(#head)"><title>rank {} waits for rank {}: {:.1f} % of the time</title></path>)svg",
      from.x, from.y, middle.x, middle.y, end.x, end.y, 1 + 9 * std::min(1.0, what.share), what.from, what.to,
      what.share * 100);
}

}  // namespace

std::string waitViewSvg(const WaitView& view) {
  int stages = 1, shards = 1, replicas = 1;
  for (const auto& place : view.places) {
    stages = std::max(stages, place.pipeline + 1);
    shards = std::max(shards, place.tensor + 1);
    replicas = std::max(replicas, place.data + 1);
  }
  const double replicaWidth = stages * stepX + gap;
  const double width = left + replicas * replicaWidth, height = top + shards * stepY;
  std::string svg = fmt::format(
      R"svg(<svg id="waits" viewBox="0 0 {0:.0f} {1:.0f}" style="max-width:{0:.0f}px" role="img" aria-label="who waits for whom"><defs><marker id="head" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" refX="7" refY="4.5" orient="auto"><path d="M0,0 L9,4.5 L0,9 z" style="fill:#c0392b"/></marker></defs>)svg",
      width, height);
  std::map<int, Spot> spots;
  std::map<int, double> awaited;
  for (const auto& place : view.places)
    spots[place.rank] = {left + place.data * replicaWidth + place.pipeline * stepX + stepX / 2,
                         top + place.tensor * stepY + stepY / 2};
  for (int replica = 0; replica < replicas; ++replica)
    svg += fmt::format(R"(<text class="tick" x="{:.0f}" y="16">{}</text>)", left + replica * replicaWidth,
                       replicas > 1 ? fmt::format("DP {}", replica) : "");
  for (const auto& each : view.arrows) {
    if (!spots.contains(each.from) || !spots.contains(each.to) || each.from == each.to) continue;
    awaited[each.to] += each.share;
    svg += arrow(spots[each.from], spots[each.to], each);
  }
  for (const auto& place : view.places) {
    const Spot& spot = spots[place.rank];
    svg += fmt::format(
        R"svg(<g class="rank"><circle cx="{0:.1f}" cy="{1:.1f}" r="{2}" style="fill:var(--paper)"/><circle cx="{0:.1f}" cy="{1:.1f}" r="{2}" style="fill:#c0392b;fill-opacity:{3:.2f};stroke:currentColor"/><text class="tick" x="{0:.1f}" y="{4:.1f}" text-anchor="middle">{5}</text><title>rank {5}: DP {6}, PP {7}, TP {8}; others waited for it {9:.1f} % of their time, all together</title></g>)svg",
        spot.x, spot.y, radius, std::min(0.85, awaited[place.rank]), spot.y + 4, place.rank, place.data, place.pipeline,
        place.tensor, awaited[place.rank] * 100);
  }
  return svg + "</svg>";
}

}  // namespace falcon::report_page
