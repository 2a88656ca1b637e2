#include "report/page.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/escaped.h"
#include "json_text.h"
#include "report/embedded_page.h"

namespace falcon::report_page {
namespace {

using nlohmann::json;

json jsonOf(const Series& series) {
  json points = json::array();
  for (const Point& point : series.points) points.push_back({point.seconds, point.milliseconds});
  return {{"name", series.name}, {"color", series.color}, {"points", points}};
}

json jsonOf(const HeatMap& heat) {
  json shares = json::array();
  for (const auto& row : heat.shares) {
    json& cells = shares.emplace_back(json::array());
    for (const auto& share : row) cells.push_back(share ? json(*share) : json());
  }
  return {
      {"note", heat.note}, {"rows", heat.rows}, {"columns", heat.columns}, {"shares", shares}, {"legend", heat.legend}};
}

json jsonOf(const WaitView& waits) {
  json ranks = json::array(), arrows = json::array();
  for (const auto& at : waits.ranks)
    ranks.push_back({{"rank", at.rank}, {"data", at.data}, {"pipeline", at.pipeline}, {"tensor", at.tensor}});
  for (const auto& arrow : waits.arrows)
    arrows.push_back({{"from", arrow.from}, {"to", arrow.to}, {"share", arrow.share}});
  return {{"note", waits.note}, {"ranks", ranks}, {"arrows", arrows}};
}

void replaceAll(std::string& text, std::string_view part, std::string_view by) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
}

}  // namespace

std::string pageJson(const Page& page) {
  json series = json::array(), marks = json::array(), spans = json::array();
  for (const Series& each : page.series) series.push_back(jsonOf(each));
  for (const Mark& mark : page.marks)
    marks.push_back({{"seconds", mark.seconds}, {"kind", mark.kind}, {"text", mark.text}, {"severity", mark.severity}});
  for (const Span& span : page.spans)
    spans.push_back({{"start", span.start}, {"end", span.end}, {"label", span.label}});
  const json all{{"title", page.title},
                 {"subtitle", page.subtitle},
                 {"series", series},
                 {"marks", marks},
                 {"events_note", page.eventsNote},
                 {"spans", spans},
                 {"table", {{"head", page.tableHead}, {"rows", page.tableRows}}},
                 {"notes", page.notes},
                 {"heat", page.heat ? jsonOf(*page.heat) : json()},
                 {"waits", page.waits ? jsonOf(*page.waits) : json()}};
  std::string text = tools::jsonText(all);
  // Only in strings can it stand: an element that holds data ends at `</`, whatever quotes are around it.
  replaceAll(text, "<", "\\u003c");
  return text;
}

std::string renderHtml(const Page& page) {
  constexpr std::string_view title = "<title>NCCL Falcon</title>", data = R"(type="application/json">{})";
  std::string html = embeddedPage;
  const std::size_t dataAt = html.find(data);
  html.replace(dataAt + data.size() - 2, 2, pageJson(page));
  html.replace(html.find(title), title.size(), "<title>" + htmlText(page.title) + "</title>");
  return html;
}

}  // namespace falcon::report_page
