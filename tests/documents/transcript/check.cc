// Does the transcript in README.md look like what today's code says?
//   check_transcript README.md EVENTS...   files with the events of a real job each, or folders of such *.jsonl
// Exit code 0: yes, 1: no, or there is nothing to compare with.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/format.h"
#include "comparison.h"
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
  const auto transcript = toldInTranscript(contentOf(arguments[1]));
  const auto found = differences(transcript, today);
  for (const std::string& difference : found) fmt::print("{}: {}\n", arguments[1], difference);
  if (found.empty())
    fmt::print("{} events of the transcript look like those of {} jobs of today\n", transcript.size(),
               today.jobs.size());
  else
    fmt::print("write it anew with scripts/transcript\n");
  return found.empty() ? 0 : 1;
}
