// Does the transcript in README.md look like what today's code says?
//   check_transcript README.md EVENTS...   files with the events of a real job each, or folders of such *.jsonl
// Exit code 0: yes, 1: no, or there is nothing to compare with.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/format.h"
#include "comparison.h"
#include "demo/evaluation.h"
#include "made_up_job.h"

namespace fs = std::filesystem;
using namespace falcon::documents;

namespace {

std::string contentOf(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

std::vector<std::vector<Told>> jobsIn(const fs::path& path) {
  std::vector<std::vector<Told>> jobs;
  if (fs::is_regular_file(path)) jobs.push_back(toldByJob(contentOf(path)));
  if (fs::is_directory(path))
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".jsonl") jobs.push_back(toldByJob(contentOf(entry.path())));
  std::erase_if(jobs, [](const auto& job) { return job.empty(); });
  return jobs;
}

/// The head of the demo's table, and how its figures are computed.
std::vector<std::string> alwaysBelow() {
  std::vector<std::string> always = falcon::demo::legend();
  std::string head;
  for (const std::string& column : falcon::demo::tableHead()) head += (head.empty() ? "" : " ") + column;
  always.push_back(std::move(head));
  return always;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    fmt::print("usage: check_transcript README.md EVENTS...\n");
    return 2;
  }
  Today today;
  for (int i = 2; i < count; ++i) {
    const auto jobs = jobsIn(arguments[i]);
    if (jobs.empty()) {
      fmt::print("no events of a real job in {}: the live tests (multi_rank_live) write them, run those first\n",
                 arguments[i]);
      return 1;
    }
    today.jobs.insert(today.jobs.end(), jobs.begin(), jobs.end());
  }
  today.madeUp = toldOfMadeUpJobs();
  const std::string markdown = contentOf(arguments[1]);
  const auto transcript = toldInTranscript(markdown);
  auto found = differences(transcript, today);
  const auto missing = missingBelow(linesOfTranscript(markdown), alwaysBelow());
  found.insert(found.end(), missing.begin(), missing.end());
  for (const std::string& difference : found) fmt::print("{}: {}\n", arguments[1], difference);
  if (found.empty())
    fmt::print("{} events of the transcript look like those of {} jobs of today\n", transcript.size(),
               today.jobs.size());
  else
    fmt::print("write it anew with scripts/transcript\n");
  return found.empty() ? 0 : 1;
}
