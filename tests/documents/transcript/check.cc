// Does the transcript in README.md look like what today's code says?
//   check_transcript README.md SINCE EVENTS...
// EVENTS: files with the events of a real job each, or folders of such *.jsonl; what is older than the file SINCE is of
// no test of today and does not count.
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
#include "demo/session.h"
#include "made_up_job.h"

namespace fs = std::filesystem;
using namespace falcon::documents;

namespace {

std::string contentOf(const fs::path& path) {
  std::ostringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

std::vector<std::vector<Told>> jobsIn(const fs::path& path, fs::file_time_type since) {
  std::vector<fs::path> files;
  if (fs::is_regular_file(path)) files.push_back(path);
  if (fs::is_directory(path))
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  std::vector<std::vector<Told>> jobs;
  for (const fs::path& file : files)
    if (fs::last_write_time(file) >= since) jobs.push_back(toldByJob(contentOf(file)));
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

/// What the demo prints of an event is what is read again here.
bool readsWhatTheDemoPrints() {
  const auto told =
      toldInTranscript("<!-- transcript: -->\n" + falcon::demo::eventLine(117.7, "mitigation-undone", "a, b") +
                       "\n<!-- end of transcript -->\n");
  return told.size() == 1 && told[0].kind == "mitigation-undone" && told[0].text == "a, b";
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4 || !fs::exists(arguments[2])) {
    fmt::print("usage: check_transcript README.md SINCE EVENTS...\n");
    return 2;
  }
  if (!readsWhatTheDemoPrints()) {
    fmt::print("the demo prints its events otherwise than they are read here (told.cc)\n");
    return 1;
  }
  Today today;
  for (int i = 3; i < count; ++i) {
    const auto jobs = jobsIn(arguments[i], fs::last_write_time(arguments[2]));
    if (jobs.empty()) {
      fmt::print("no events of a real job in {}: the live tests (multi_rank_live) write them, run those first\n",
                 arguments[i]);
      return 1;
    }
    today.jobs.insert(today.jobs.end(), jobs.begin(), jobs.end());
  }
  today.madeUp = toldOfMadeUpJobs();
  today.sentences = sentencesOfChance();
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
