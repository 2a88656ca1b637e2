// Carries what the ranks print to this process's stdout and stderr, in whole lines.
#pragma once

#include <thread>
#include <vector>

#include "base/owned.h"
#include "base/result.h"
#include "run/prefixed_lines.h"

namespace falcon::tools {

/// One thread that may block on a slow reader, so that whoever supervises the ranks never does.
class OutputRelay {
 public:
  OutputRelay() = default;
  OutputRelay(const OutputRelay&) = delete;
  /// Waits for the streams' ends: of the ranks, of their children, and of this process's own copies.
  ~OutputRelay() { finish(); }

  /// Makes a stream that ends at `output` (STDOUT_FILENO or STDERR_FILENO). Before start() only.
  /// @return the end to write to; closes on exec
  Result<FileDescriptor> addStream(int output, std::string prefix);

  void start();
  /// Waits until all writers have closed their ends, and everything is out.
  void finish();
  /// Whether something could not be written although there is a reader (a full disk); said once on stderr. After
  /// finish() only.
  bool lostOutput() const { return lostOutput_; }

 private:
  struct Stream {
    FileDescriptor source;
    int output;
    PrefixedLines lines;
  };
  void relayAll();
  void relayOnce(Stream& stream);
  void write(int output, const std::string& text);
  void readerIsGone(int output);
  void lose(int output, int error);

  std::vector<Stream> streams_;
  std::thread thread_;
  bool lostOutput_ = false;
};

}  // namespace falcon::tools
