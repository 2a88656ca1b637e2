// The comparison itself: a changed wording is found, what differs from run to run is not.
#include "comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "made_up_job.h"
#include "shape.h"

namespace falcon::documents {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::vector<Told> slowRank = {
    {"job-started", "the job has 8 ranks and 7 communicators"},
    {"onset", "iterations went from 409.4 ms to 1006.3 ms"},
    {"suspicion",
     "rank 3 computes 2.65x longer than usual, communication among [2, 3] takes 3.40x its healthy time; "
     "the chain of waiting ends at rank 3's own time (82 % of the delay)"},
    {"trap-opened", "the job was held for 0.88 s (0.27 s until all were)"},
    {"verdict",
     "rank 3 is slow: matrix products 3.59 times slower than its peers', throttled 64 % of the time: its "
     "processor does less work; rank 3: process 4711 on vm, 10.211.0.13"},
    {"mitigation-applied", "micro-batches split 9+3+9+11 over the replicas: computing takes 0.34 s instead of 0.86 s"},
    {"job-ended", "the job ends after 283 iterations; 1 fail-slow was named"}};
const std::vector<Told> slowLink = {
    {"job-started", "the job has 8 ranks and 7 communicators"},
    {"onset", "iterations went from 431 ms to 1e+03 ms"},
    {"suspicion", "communication among [1, 3, 5, 7] takes 18.03x its healthy time"},
    {"trap-opened", "the job was held for 1.46 s (0.11 s until all were)"},
    {"verdict",
     "link 3 <-> 5 is slow: 4.7 MB/s against a median of 2286 MB/s over 8 socket links, measured 3 times; "
     "rank 3: process 4711 on vm, 10.211.0.13; rank 5: process 4712 on vm, 10.211.0.15"},
    {"mitigation-applied",
     "re-routed around link 3 <-> 5: ring 1-5-7-3; the order of float sums changes, alike on all ranks"},
    {"job-ended", "the job ends after 283 iterations; 1 fail-slow was named"}};
const std::vector<Told> healthy = {{"job-started", "the job has 8 ranks and 7 communicators"},
                                   {"job-ended", "the job ends after 283 iterations; no fail-slows were named"}};
/// The same where chance decides otherwise.
const std::vector<Told> otherwise = {
    {"suspicion", "rank 1 computes 2.00x longer than usual"},
    {"verdict",
     "rank 1 is slow: matrix products 2.00 times slower than its peers'; rank 1: process 4710 on vm, 10.0.0.1"},
    {"verdict",
     "link 0 -> 2 is slow: 2.0 MB/s against a median of 2000 MB/s over 8 socket links, measured 3 times; "
     "rank 0: process 4709 on vm, 10.0.0.0; rank 2: process 4710 on vm, 10.0.0.2"},
    {"mitigation-applied",
     "re-routed around link 0 -> 2: ring 0-4-2; the order of float sums changes, alike on all ranks"}};
const Today today{.jobs = {slowRank, slowLink, healthy}, .madeUp = otherwise, .sentences = {}};

/// What a run of the demo prints: both stories in one.
std::vector<Told> transcript() {
  auto told = slowRank;
  told.pop_back();
  told.insert(told.end(), slowLink.begin() + 1, slowLink.end());
  told.back().text = "the job ends after 507 iterations; 2 fail-slows were named";
  return told;
}

std::vector<std::string> afterReplacing(std::vector<Told> told, const std::string& what, const std::string& by) {
  int replaced = 0;
  for (Told& each : told)
    for (size_t at = each.text.find(what); at != std::string::npos; at = each.text.find(what, at + by.size())) {
      each.text.replace(at, what.size(), by);
      ++replaced;
    }
  EXPECT_GT(replaced, 0) << what;
  return differences(told, today);
}

TEST(Comparison, TheSameIsNoDifference) {
  EXPECT_THAT(differences(transcript(), today), IsEmpty());
}

TEST(Comparison, NumbersRanksAndListsMayDiffer) {
  const std::pair<const char*, const char*> others[] = {{"409.4 ms", "7 ms"},
                                                        {"0.88 s", "880 ms"},
                                                        {"[2, 3]", "[6]"},
                                                        {"[2, 3]", "[0, 1, 2, 3]"},
                                                        {"[2, 3]", "ranks 2, 3"},
                                                        {"[2, 3]", "ranks 0, 2, 3 (data parallel 11 \"dp\")"},
                                                        {"[2, 3]", "ranks 0 to 63 (whole job)"},
                                                        {"rank 3", "rank 12"},
                                                        {"9+3+9+11", "16+16"},
                                                        {"1-5-7-3", "0-2-4"},
                                                        {"link 3 <-> 5", "link 0 -> 2"},
                                                        {"measured 3 times", "measured twice"},
                                                        {"8 ranks", "1 rank"},
                                                        {"10.211.0.13", "192.168.1.1"},
                                                        {"process 4711 on vm", "process 9 on node-17.site"},
                                                        {"4.7 MB/s", "512 MB/s"},
                                                        {"ring 1-5-7-3", "ring 1-5-7-3, ring 0-2-4-6"}};
  for (const auto& [what, by] : others) EXPECT_THAT(afterReplacing(transcript(), what, by), IsEmpty()) << what;
}

TEST(Comparison, ClausesThatChanceDecidesMayBeMissing) {
  for (const char* clause :
       {", communication among [2, 3] takes 3.40x its healthy time", ", throttled 64 % of the time",
        "; the chain of waiting ends at rank 3's own time (82 % of the delay)"})
    EXPECT_THAT(afterReplacing(transcript(), clause, ""), IsEmpty()) << clause;
}

TEST(Comparison, EveryOtherWordingIsFound) {
  const std::pair<const char*, const char*> others[] = {{"iterations went from", "iterations changed from"},
                                                        {"computes", "is busy for"},
                                                        {"matrix products", "products"},
                                                        {"throttled", "held back"},
                                                        {"its processor does less work", "it is slow"},
                                                        {"process 4711", "pid 4711"},
                                                        {"socket links", "links"},
                                                        {"ring 1-5-7-3", "order 1-5-7-3"},
                                                        {"the job was held", "the job stood still"},
                                                        {"until all were", "to close"},
                                                        {"fail-slows were", "culprits were"},
                                                        {"alike on all ranks", "on all ranks"}};
  for (const auto& [what, by] : others)
    EXPECT_THAT(afterReplacing(transcript(), what, by), Contains(HasSubstr("today's code does not say"))) << what;
}

TEST(Comparison, WhatTodayAlwaysSaysMustBeShown) {
  // Whereabouts came later than the transcript.
  EXPECT_THAT(afterReplacing(transcript(), "process 4711 on vm, 10.211.0.13; rank 5", "10.211.0.13; rank 5"), IsEmpty())
      << "the other rank's is there";
  auto older = transcript();
  for (Told& told : older) told.text = told.text.substr(0, told.text.find("; rank 3: process"));
  EXPECT_THAT(differences(older, today),
              Contains(HasSubstr("all of today's events \"verdict\" say \"process # on <host>\"")));
}

TEST(Comparison, WhatOneSortOfEventsSaysMoreTodayMustBeShown) {
  Today more = today;
  more.jobs.push_back({{"job-started", "the job has 8 ranks and 7 communicators"},
                       {"verdict", "host vm is slow: CPU contention from outside"},
                       {"job-ended", "the job ends after 9 iterations; 1 fail-slow was named"}});
  EXPECT_THAT(differences(transcript(), more), IsEmpty()) << "a host's verdict says other things";
  more.jobs.push_back(more.madeUp);
  more.madeUp.clear();
  for (auto& job : more.jobs)
    for (Told& told : job)
      if (told.kind == "mitigation-applied" && told.text.starts_with("re-routed")) told.text += "; on 3 rails";
  EXPECT_THAT(differences(transcript(), more), ElementsAre(HasSubstr("say \"on # rail\" after \"re-routed")));
}

TEST(Comparison, KindsMustBeTheSame) {
  auto told = transcript();
  std::erase_if(told, [](const Told& each) { return each.kind == "trap-opened"; });
  EXPECT_THAT(differences(told, today), ElementsAre(HasSubstr("say \"trap-opened\", and the transcript does not")));

  told = transcript();
  told.push_back({"trap-lifted", "the job was held for 0.88 s"});
  EXPECT_THAT(differences(told, today), ElementsAre(HasSubstr("\"trap-lifted\", and no event of today's code")));

  // What one job of two says beside its story is chance.
  Today more = today;
  more.jobs[0].push_back({"worsening", "iterations went from 1 ms to 2 ms"});
  EXPECT_THAT(differences(transcript(), more), IsEmpty());
}

TEST(Comparison, NothingIsNotEnough) {
  EXPECT_THAT(differences({}, today), ElementsAre(HasSubstr("no events")));
  EXPECT_THAT(differences(transcript(), {}), ElementsAre(HasSubstr("nothing to compare with")));
  EXPECT_THAT(differences(transcript(), {.jobs = {healthy}, .madeUp = slowRank, .sentences = {}}),
              ElementsAre(HasSubstr("nothing to compare with")));
}

TEST(Comparison, TheTranscriptIsWhatStandsBetweenTheMarks) {
  const std::string events =
      "    0.9 s  job-started          the job has 8 ranks\nno event: 3.0 s\n  117.7 s  relief               rank 3\n";
  const std::string marked = "  1.0 s  onset  outside\n<!-- transcript: scripts/transcript --seed 21 -->\n" + events;
  EXPECT_THAT(toldInTranscript(events), IsEmpty());
  EXPECT_THAT(toldInTranscript(marked), IsEmpty()) << "it has no end";
  const auto told = toldInTranscript(marked + "<!-- end of transcript -->\n  1.0 s  onset  outside\n");
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].kind, "job-started");
  EXPECT_EQ(told[0].text, "the job has 8 ranks");
  EXPECT_EQ(told[1].kind, "relief");
}

TEST(Comparison, WhatStandsBelowTheEventsMustBeThere) {
  const auto lines = linesOfTranscript(
      "slow: outside\n<!-- transcript: scripts/transcript --seed 21 -->\n\ntruth    verdict\n"
      "  slow: without Falcon\n<!-- end of transcript -->\n");
  EXPECT_THAT(lines, ElementsAre("", "truth verdict", "slow: without Falcon"));
  EXPECT_THAT(missingBelow(lines, {"truth verdict", "slow: without Falcon"}), IsEmpty());
  EXPECT_THAT(missingBelow(lines, {"truth verdict", "slow: with Falcon"}), ElementsAre(HasSubstr("slow: with Falcon")));
}

TEST(Comparison, ReadsWhatTheLibraryWrites) {
  const auto told = toldByJob("{\"v\":1,\"kind\":\"relief\",\"time_s\":5.5,\"text\":\"rank 3\"}\nnot json\n{}\n");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].kind, "relief");
  EXPECT_EQ(told[0].text, "rank 3");
}

TEST(Shape, IsWhatStaysOfASentence) {
  EXPECT_EQ(shapeOf("micro-batches split 9+3+9+11 in 0.34 s, ring 1-5-7-3 over [1, 3] at 4.7 MB/s"),
            "micro-batches split <split> in <time>, ring <order> over [ranks] at <rate>");
  EXPECT_THAT(clausesOf("a 1 (b 2.5 %): c; d, e"), ElementsAre("a #", "b # %", "c", "d", "e"));
}

TEST(MadeUpJobs, SayAllThatChanceDecides) {
  std::vector<std::string> verdicts, suspicions, periods, kinds;
  auto all = toldOfMadeUpJobs();
  for (Told& told : sentencesOfChance()) all.push_back(std::move(told));
  for (const Told& told : all) {
    kinds.push_back(told.kind);
    if (told.kind == "verdict") verdicts.push_back(told.text);
    if (told.kind == "period-known") periods.push_back(told.text);
    if (told.kind == "suspicion") suspicions.push_back(told.text);
  }
  for (const char* kind :
       {"job-started", "baseline-taken", "onset", "worsening", "suspicion", "trap-closed", "trap-opened", "verdict",
        "inconclusive", "mitigation-applied", "relief", "mitigation-undone", "job-ended"})
    EXPECT_THAT(kinds, Contains(kind));
  EXPECT_THAT(periods, Contains(HasSubstr("has become faster")));
  for (const char* part : {"CPU quota", "CPU contention", "hypervisor", "memory", "its own work takes longer",
                           "its processor does less work", "outside of it", "link 0 <-> 2", "when it was healthy"})
    EXPECT_THAT(verdicts, Contains(HasSubstr(part)));
  for (const char* part : {"own time", "one stretch", "messages from", "after all have come", "on all ranks alike",
                           "nobody in particular", "who for is not told"})
    EXPECT_THAT(suspicions, Contains(HasSubstr(part)));
}

}  // namespace
}  // namespace falcon::documents
