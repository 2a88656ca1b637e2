#include "comparison.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "shape.h"

namespace falcon::documents {
namespace {

using Words = std::set<std::string>;

Words clauseSetOf(const Told& told) {
  const auto clauses = clausesOf(told.text);
  return {clauses.begin(), clauses.end()};
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

/// What all stories with a verdict have in common: what chance adds to one of them, it does not add to all.
struct Common {
  std::optional<Words> kinds;
  std::map<std::string, std::optional<Words>> clauses;
  std::map<std::string, std::string> example;
};

Common commonOf(const std::vector<std::vector<Told>>& jobs) {
  Common common;
  for (const auto& job : jobs) {
    const Words kinds = kindsOf(job);
    if (!kinds.contains("verdict")) continue;
    keepCommon(common.kinds, kinds);
    for (const Told& told : job) {
      keepCommon(common.clauses[told.kind], clauseSetOf(told));
      common.example[told.kind] = told.text;
    }
  }
  return common;
}

}  // namespace

std::vector<std::string> differences(const std::vector<Told>& transcript, const Today& today) {
  if (transcript.empty()) return {"the transcript has no events between its marks"};
  const Common common = commonOf(today.jobs);
  if (!common.kinds) return {"none of today's jobs has a verdict: there is nothing to compare with"};

  std::vector<Told> said = today.madeUp;
  for (const auto& job : today.jobs) said.insert(said.end(), job.begin(), job.end());
  const auto known = clausesByKind(said);
  const auto shown = clausesByKind(transcript);

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
  for (const std::string& kind : *common.kinds) {
    const auto words = shown.find(kind);
    if (words == shown.end()) {
      found.push_back("all of today's jobs with a verdict say \"" + kind + "\", and the transcript does not; it has " +
                      joined(kindsOf(transcript)));
      continue;
    }
    for (const std::string& clause : *common.clauses.at(kind))
      if (!words->second.contains(clause))
        found.push_back("all of today's events \"" + kind + "\" say \"" + clause + "\", and the transcript does not");
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
