// The healthy baseline of a job as it outlives the job, so that a restart of the same name can be compared with it.
//
// Format, version 3 (in 2, no work was told; in 1, bytes moved until they had left the process): text, one thing a
// line, words separated by blanks, numbers in C's notation.
//   falcon-baseline 3
//   job <seconds since 1970> <seconds an iteration> <calls an iteration> <usual work of one; 0: not told>
//   group <job rank>...                         a communicator's members; groups are numbered from 0
//   rank <job rank> <seconds an iteration> <of it outside of the library> <the same by micro-batch> <micro-batches>
//   inside <group> <seconds an iteration>       of the rank above: in the library for that group
//   transfer <group> <peer> <channel> <s|r> <bytes> <seconds moving> <seconds waiting>   an iteration; peer in the
//   group end
// Bytes a second of a connection are bytes by moving; its share of waiting is waiting by moving and waiting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/job_view.h"

namespace falcon::control {

struct StoredBaseline {
  struct Transfer {
    std::uint32_t group = 0;
    Rank peer = -1;
    std::int32_t channel = 0;
    bool sending = false;
    double bytes = 0, moving = 0, waiting = 0;
    bool operator==(const Transfer&) const = default;
  };
  struct Inside {
    std::uint32_t group = 0;
    double seconds = 0;
    bool operator==(const Inside&) const = default;
  };
  struct Member {
    Rank rank = -1;
    double duration = 0, outside = 0, outsidePerMicroBatch = 0, microBatches = 1;
    std::vector<Inside> inside;
    std::vector<Transfer> transfers;
    bool operator==(const Member&) const = default;
  };
  double wallTime = 0;
  double iterationSeconds = 0;  ///< with this work
  double work = 0;              ///< 0: not told
  std::uint32_t calls = 0;
  std::vector<std::vector<Rank>> groups;
  std::vector<Member> members;
  bool operator==(const StoredBaseline&) const = default;
};

/// What the members' healthy profiles say. Communicators of the same members count as one group: their ids are others
/// in every run.
StoredBaseline storedFrom(const JobView& job, double iterationSeconds, double work, std::uint32_t calls,
                          double wallTime);

/// Whether that was this job: the same ranks, groups, micro-batches and number of calls, and work told or not. A job of
/// the same name with another batch or layout is another one, and may well be slower.
bool isOfThisJob(const StoredBaseline& stored, const JobView& job, double work, std::uint32_t calls);

/// Every member's healthy profile becomes the stored one.
void useStored(const StoredBaseline& stored, JobView& job);

std::string encodeBaseline(const StoredBaseline& baseline);
/// Checked word by word: the file may be of another version, cut short, or somebody's joke.
Result<StoredBaseline> decodeBaseline(std::string_view text);

/// The file `baseline` in a job's folder; written by rename, so that it is always whole.
Status writeBaseline(const std::string& folder, const StoredBaseline& baseline);
Result<StoredBaseline> readBaseline(const std::string& folder);

/// What an earlier run of this job left, before `startWallTime`; with torchrun's restart count in the job's name, an
/// earlier attempt.
std::optional<StoredBaseline> earlierBaseline(const std::string& job, double startWallTime);

}  // namespace falcon::control
