// Event lines: whatever the text holds, what is written is one line of JSON that says it.
#include "report/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "fuzz_target.h"

namespace falcon::fuzz {

std::vector<std::string> seeds() {
  return {"rank 3 is slow", "\"quoted\" and back\\slash", "line\nfeed\ttab", "link 0 -> 2: 1.5x", "caf\xc3\xa9",
          "\xff\xfe"};
}

void run(std::string_view input) {
  Event event;
  event.kind = EventKind::verdict;
  event.culprit.kind = CulpritKind::rank;
  event.culprit.rank = 3;
  event.confidence = 0.5;
  event.text = input;
  const std::string line = report::toJson(event);
  require(line.find('\n') == std::string::npos, "an event is one line");
  const auto json = nlohmann::json::parse(line, nullptr, false);
  require(!json.is_discarded(), "an event is JSON");
  require(json["culprit"]["rank"] == 3, "the culprit is named");
  // The library's idea of text against another's: quoted as it is, the input is JSON only if it is UTF-8.
  const bool plain = std::all_of(input.begin(), input.end(),
                                 [](char c) { return static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\'; });
  if (plain && nlohmann::json::accept('"' + event.text + '"'))
    require(json["text"] == event.text, "text comes back as it was");
}

}  // namespace falcon::fuzz
