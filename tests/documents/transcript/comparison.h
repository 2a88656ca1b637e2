// A transcript against what today's code says. Pure.
#pragma once

#include <string>
#include <vector>

#include "told.h"

namespace falcon::documents {

/// What today's code says.
struct Today {
  std::vector<std::vector<Told>> jobs;  ///< real ones, each with its whole story; the healthy too
  std::vector<Told> madeUp;             ///< of jobs in arithmetic: what chance did not let the real ones say
  std::vector<Told> sentences;          ///< parts of what is said, for rule 1 alone
};

/// Why the transcript is not what today's code says; a sentence each, empty where it is.
///  1. Every event in it has a kind, and clauses, that today's events of that kind have.
///  2. Every kind that all of today's jobs have in which something was worked around is in it; and where an event is in
///     it, every clause that all of today's events of its kind have that begin like it, two of them at least.
std::vector<std::string> differences(const std::vector<Told>& transcript, const Today& today);

/// What is said below the events in every run, and is not among the transcript's lines; a sentence each.
std::vector<std::string> missingBelow(const std::vector<std::string>& transcript,
                                      const std::vector<std::string>& always);

}  // namespace falcon::documents
