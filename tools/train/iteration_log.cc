#include "train/iteration_log.h"

#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstring>
#include <stdexcept>

namespace falcon::train {

namespace {

/// The path of this rank's log, or nothing if it writes none.
std::string logPath(std::string path, int rank) {
  const std::string number = std::to_string(rank);
  std::size_t at = path.find("%r");
  if (at == std::string::npos) return rank == 0 ? path : std::string();
  for (; at != std::string::npos; at = path.find("%r", at + number.size())) path.replace(at, 2, number);
  return path;
}

}  // namespace

IterationLog::IterationLog(const std::string& path, int rank) {
  const std::string own = logPath(path, rank);
  if (own.empty()) return;
  file_.reset(std::fopen(own.c_str(), "ae"));
  if (!file_) throw std::runtime_error("cannot write the log " + own + ": " + std::strerror(errno));
}

void IterationLog::begin(bool goesOn) {
  if (file_ && !goesOn && ::ftruncate(::fileno(file_.get()), 0) != 0)
    throw std::runtime_error(std::string("cannot empty the log: ") + std::strerror(errno));
}

void IterationLog::write(const IterationRecord& record) {
  if (!file_) return;
  std::string told;
  if (record.health)
    told = std::string(",\"health\":\"") + record.health + "\",\"changed\":" + std::to_string(record.changed);
  const int written = std::fprintf(
      file_.get(),
      "{\"iteration\":%" PRIu64
      ",\"loss\":%.9g,\"start\":%.6f,\"end\":%.6f,\"microBatches\":%d,\"processor\":%.6f%s}\n",
      record.iteration, record.loss, record.start, record.end, record.microBatches, record.processor, told.c_str());
  if (written < 0 || std::fflush(file_.get()) != 0)
    throw std::runtime_error(std::string("cannot write the log: ") + std::strerror(errno));
}

}  // namespace falcon::train
