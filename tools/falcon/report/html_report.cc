#include "report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escaped.h"

namespace falcon::report_page {
namespace {

constexpr double chartWidth = 1080, chartHeight = 360;
constexpr double left = 64, right = 16, top = 58, bottom = 40;

/// Maps seconds and milliseconds to the picture.
struct Scale {
  double lastSecond = 1;
  double mostMilliseconds = 1;
  double x(double seconds) const { return left + seconds / lastSecond * (chartWidth - left - right); }
  double y(double milliseconds) const {
    return chartHeight - bottom - std::min(1.0, milliseconds / mostMilliseconds) * (chartHeight - top - bottom);
  }
};

// The scale shows nearly all points in full: a handful of extreme ones is cut at the top edge.
Scale scaleFor(const Page& page) {
  Scale scale;
  std::vector<double> all;
  for (const Series& series : page.series)
    for (const Point& point : series.points) {
      all.push_back(point.milliseconds);
      scale.lastSecond = std::max(scale.lastSecond, point.seconds);
    }
  for (const Span& span : page.spans) scale.lastSecond = std::max(scale.lastSecond, span.end);
  if (all.empty()) return scale;
  std::sort(all.begin(), all.end());
  scale.mostMilliseconds = all[static_cast<size_t>(static_cast<double>(all.size() - 1) * 0.99)] * 1.15;
  return scale;
}

// 1, 2 or 5 times a power of ten, about `wanted` of them up to `most`.
double tickStep(double most, int wanted) {
  const double raw = most / wanted;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (power * factor >= raw) return power * factor;
  return power * 10;
}

const char* colorOf(const std::string& kind) {
  if (kind == "onset") return "#c0392b";
  if (kind == "verdict") return "#8e44ad";
  if (kind.starts_with("mitigation")) return "#1e8449";
  if (kind == "relief") return "#2471a3";
  return "#7f8c8d";
}

std::string axes(const Scale& scale) {
  std::string svg;
  const double bottomLine = chartHeight - bottom;
  for (double ms = 0, step = tickStep(scale.mostMilliseconds, 5); ms <= scale.mostMilliseconds; ms += step)
    svg += fmt::format(
        R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/><text class="tick" x="{3}" y="{4:.1f}" text-anchor="end">{5:g}</text>)",
        left, chartWidth - right, scale.y(ms), left - 8, scale.y(ms) + 4, ms);
  for (double s = 0, step = tickStep(scale.lastSecond, 10); s <= scale.lastSecond; s += step)
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{:g}</text>)", scale.x(s),
                       bottomLine + 16, s);
  svg += fmt::format(R"(<text class="tick" x="{:.0f}" y="{}" text-anchor="middle">seconds since the start</text>)",
                     chartWidth / 2, chartHeight - 4);
  svg += fmt::format(
      R"svg(<text class="tick" transform="translate(14,{:.0f}) rotate(-90)" text-anchor="middle">iteration, ms</text>)svg",
      (top + bottomLine) / 2);
  return svg;
}

std::string chart(const Page& page) {
  const Scale scale = scaleFor(page);
  std::string svg =
      fmt::format(R"(<svg id="iterations" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="iteration times">)",
                  chartWidth, chartHeight);
  for (const Span& span : page.spans) {
    svg +=
        fmt::format(R"(<rect class="injection" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect>)",
                    scale.x(span.start), top, std::max(1.0, scale.x(span.end) - scale.x(span.start)),
                    chartHeight - top - bottom, htmlText(span.label));
    svg += fmt::format(R"(<text class="injected" x="{:.1f}" y="{}">{}</text>)", scale.x(span.start) + 4, top - 6,
                       htmlText(span.label));
  }
  svg += axes(scale);
  for (const Series& series : page.series) {
    std::string points;
    for (const Point& point : series.points)
      points += fmt::format("{:.1f},{:.1f} ", scale.x(point.seconds), scale.y(point.milliseconds));
    svg += fmt::format(R"(<polyline class="series" style="stroke:{}" points="{}"><title>{}</title></polyline>)",
                       htmlText(series.color), points, htmlText(series.name));
  }
  int row = 0;
  for (const Mark& mark : page.marks) {
    const double x = scale.x(mark.seconds);
    svg += fmt::format(
        R"(<g class="mark" data-kind="{0}"><line x1="{1:.1f}" x2="{1:.1f}" y1="{2}" y2="{3}" style="stroke:{4}"/><text x="{5:.1f}" y="{6}" style="fill:{4}">{0}</text><title>{7}</title></g>)",
        htmlText(mark.kind), x, top, chartHeight - bottom, colorOf(mark.kind), x + 3, top + 10 + 11 * (row % 6),
        htmlText(mark.text));
    ++row;
  }
  svg += "</svg><p class=\"legend\">";
  for (const Series& series : page.series)
    svg +=
        fmt::format(R"(<span><i style="background:{}"></i>{}</span>)", htmlText(series.color), htmlText(series.name));
  if (!page.spans.empty()) svg += R"(<span><i class="injection"></i>injected (known only afterwards)</span>)";
  return svg + "</p>";
}

std::string table(const std::vector<std::string>& head, const std::vector<std::vector<std::string>>& rows,
                  const char* id) {
  std::string html = fmt::format("<table id=\"{}\"><thead><tr>", id);
  for (const std::string& cell : head) html += "<th>" + htmlText(cell) + "</th>";
  html += "</tr></thead><tbody>";
  for (const auto& row : rows) {
    html += "<tr>";
    for (const std::string& cell : row) html += "<td>" + htmlText(cell) + "</td>";
    html += "</tr>";
  }
  return html + "</tbody></table>";
}

constexpr const char* style = R"(
:root{color-scheme:light dark;--ink:#222;--paper:#fff;--soft:#ddd}
@media (prefers-color-scheme:dark){:root{--ink:#e8e8e8;--paper:#16181b;--soft:#3a3d42}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:1120px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin-top:2rem}svg{width:100%;height:auto}
.grid{stroke:var(--soft);stroke-width:1}.tick{font-size:11px;fill:var(--ink)}.series{fill:none;stroke-width:1.5}
.injection{fill:#f39c12;background:#f39c12;opacity:.22}.injected{font-size:11px;fill:#b9770e}.mark line{stroke-width:1.2;stroke-dasharray:3 3}.mark text{font-size:10px}
.legend span{margin-right:1.5rem}.legend i{display:inline-block;width:1em;height:.6em;margin-right:.4em}
table{border-collapse:collapse;width:100%}th,td{border-bottom:1px solid var(--soft);padding:.35rem .6rem;text-align:left;vertical-align:top}
)";

}  // namespace

std::string renderHtml(const Page& page) {
  std::string html =
      "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">";
  html += "<title>" + htmlText(page.title) + "</title><style>" + style + "</style></head><body><h1>" +
          htmlText(page.title) + "</h1><p>" + htmlText(page.subtitle) + "</p>";
  if (!page.series.empty()) html += chart(page);
  if (!page.tableHead.empty())
    html += "<h2>Truth against verdict</h2>" + table(page.tableHead, page.tableRows, "verdicts");
  if (!page.notes.empty()) {
    html += "<ul>";
    for (const std::string& note : page.notes) html += "<li>" + htmlText(note) + "</li>";
    html += "</ul>";
  }
  for (const Picture& picture : page.pictures)
    html += "<h2>" + htmlText(picture.title) + "</h2><p>" + htmlText(picture.note) + "</p>" + picture.svg;
  html += "<h2>Events</h2>";
  std::vector<std::vector<std::string>> rows;
  for (const Mark& mark : page.marks)
    rows.push_back({fmt::format("{:.1f}", mark.seconds), mark.kind,
                    mark.severity > 0 ? std::to_string(mark.severity) : "", mark.text});
  html += rows.empty() ? "<p>Nothing was reported.</p>" : table({"s", "event", "severity", "what"}, rows, "events");
  return html + "</body></html>\n";
}

}  // namespace falcon::report_page
