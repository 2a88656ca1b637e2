#include "comparison.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "shape.h"

namespace falcon::documents {
namespace {

using Words = std::set<std::string>;

Words clauseSetOf(const Told& told) {
  const auto clauses = clausesOf(told.text);
  return {clauses.begin(), clauses.end()};
}

/// Events of one kind that begin alike have more in common than the kind: a verdict on a link, a re-route.
using Sort = std::pair<std::string, std::string>;  // kind, first clause

Sort sortOf(const Told& told) {
  const auto clauses = clausesOf(told.text);
  return {told.kind, clauses.empty() ? std::string() : clauses.front()};
}

Words kindsOf(const std::vector<Told>& job) {
  Words kinds;
  for (const Told& told : job) kinds.insert(told.kind);
  return kinds;
}

void keepCommon(std::optional<Words>& common, const Words& words) {
  if (!common) {
    common = words;
    return;
  }
  std::erase_if(*common, [&](const std::string& word) { return !words.contains(word); });
}

std::map<std::string, Words> clausesByKind(const std::vector<Told>& said) {
  std::map<std::string, Words> clauses;
  for (const Told& told : said) clauses[told.kind].merge(clauseSetOf(told));
  return clauses;
}

std::string joined(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// What all of today's events of a sort have in common, and how many they are.
struct OfSort {
  std::optional<Words> clauses;
  int events = 0;
};

/// What all whole stories have in common, and all events of one sort: what chance adds to one of them, it does not add
/// to all.
struct Common {
  std::optional<Words> kinds;
  std::map<Sort, OfSort> sorts;
  std::map<std::string, std::string> example;
};

Common commonOf(const Today& today) {
  Common common;
  const auto keep = [&](const Told& told) {
    OfSort& sort = common.sorts[sortOf(told)];
    keepCommon(sort.clauses, clauseSetOf(told));
    ++sort.events;
  };
  for (const auto& job : today.jobs) {
    const Words kinds = kindsOf(job);
    if (kinds.contains("mitigation-applied")) keepCommon(common.kinds, kinds);
    for (const Told& told : job) {
      keep(told);
      common.example[told.kind] = told.text;
    }
  }
  for (const Told& told : today.madeUp) keep(told);
  return common;
}

}  // namespace

std::vector<std::string> differences(const std::vector<Told>& transcript, const Today& today) {
  if (transcript.empty()) return {"the transcript has no events between its marks"};
  const Common common = commonOf(today);
  if (!common.kinds) return {"in none of today's jobs something was worked around: there is nothing to compare with"};

  std::vector<Told> said = today.madeUp;
  said.insert(said.end(), today.sentences.begin(), today.sentences.end());
  for (const auto& job : today.jobs) said.insert(said.end(), job.begin(), job.end());
  const auto known = clausesByKind(said);
  const Words shown = kindsOf(transcript);

  std::vector<std::string> found;
  for (const Told& told : transcript) {
    const auto words = known.find(told.kind);
    if (words == known.end()) {
      found.push_back("the transcript has \"" + told.kind +
                      "\", and no event of today's code is of that kind; those are " + joined(kindsOf(said)));
      continue;
    }
    for (const std::string& clause : clausesOf(told.text)) {
      if (words->second.contains(clause)) continue;
      const auto example = common.example.find(told.kind);
      found.push_back("the transcript has \"" + clause + "\" in \"" + told.kind +
                      "\", which today's code does not say; " +
                      (example == common.example.end() ? "it says: " + joined(words->second)
                                                       : "it says, for example: " + example->second));
    }
  }
  for (const std::string& kind : *common.kinds)
    if (!shown.contains(kind))
      found.push_back("all of today's jobs in which something was worked around say \"" + kind +
                      "\", and the transcript does not; it has " + joined(shown));
  std::map<Sort, Words> saidOfSort;
  for (const Told& told : transcript) saidOfSort[sortOf(told)].merge(clauseSetOf(told));
  for (const auto& [sort, words] : saidOfSort) {
    const auto always = common.sorts.find(sort);
    if (always == common.sorts.end() || always->second.events < 2) continue;
    for (const std::string& clause : *always->second.clauses)
      if (!words.contains(clause))
        found.push_back("all of today's events \"" + sort.first + "\" say \"" + clause + "\" after \"" + sort.second +
                        "\", and the transcript does not");
  }
  return found;
}

std::vector<std::string> missingBelow(const std::vector<std::string>& transcript,
                                      const std::vector<std::string>& always) {
  std::vector<std::string> found;
  for (const std::string& line : always)
    if (std::find(transcript.begin(), transcript.end(), line) == transcript.end())
      found.push_back("every run of today's code says \"" + line + "\", and the transcript does not");
  return found;
}

}  // namespace falcon::documents
