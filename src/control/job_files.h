// What a process of a job leaves in the job's folder: its call log, its ranges and its settings.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "instrument/call_log.h"
#include "instrument/range_log.h"

namespace falcon::control {

/// Where there is no shared memory to be had, or another user has taken the folder's place, both are kept in private
/// memory, and one notice says so: then nobody outside sees this rank. Made and destroyed by one thread; the logs say
/// what is thread-safe in them.
class JobFiles {
 public:
  /// The folder of the job `name`, made if need be; what dead ranks left in it is removed, and so are old jobs.
  /// Errors: not even private memory is to be had.
  static Result<std::unique_ptr<JobFiles>> open(const std::string& name);
  /// An orderly end: the records go. What a crash leaves stays readable.
  ~JobFiles();
  JobFiles(const JobFiles&) = delete;
  JobFiles& operator=(const JobFiles&) = delete;

  const std::string& folder() const { return folder_; }  ///< "" where shared memory was not to be had
  instrument::CallLog& log() { return *log_; }
  /// Says in the folder where events go, before the first is written.
  /// @param chosen  "": into the folder
  /// @return        that file; /dev/null where there is none
  std::string noteEventsPath(const std::string& chosen) const;
  /// What came of an examination that somebody asked this process for from outside: why there was none, or the figures.
  void keepExamination(const std::string& problem, const std::string& content);
  /// What the net plugin tells of the network now (transport/plugin/net_snapshot.h). It goes with an orderly end.
  void keepNetState(const std::string& content);
  /// What the planner has in force and decided last (plan_state.h), for `falcon plan`. The controller's; it stays.
  void keepPlan(const std::string& content);
  instrument::RangeLog* ranges() { return ranges_.get(); }  ///< null where there is no memory for it

 private:
  JobFiles() = default;
  void openRanges(Rank jobRank);
  void keepSettings();

  std::string folder_;
  std::string file_;  ///< in the folder, without its ending
  bool hasNetState_ = false;
  bool netStateFailed_ = false;  ///< which was said
  bool planFailed_ = false;      ///< likewise
  std::unique_ptr<instrument::CallLog> log_;
  std::unique_ptr<instrument::RangeLog> ranges_;
};

/// This host, as events and logs name it.
std::string hostName();

}  // namespace falcon::control
