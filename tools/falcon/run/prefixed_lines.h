// Turns a rank's byte stream into whole lines with a prefix in front.
#pragma once

#include <string>
#include <string_view>

namespace falcon::tools {

class PrefixedLines {
 public:
  explicit PrefixedLines(std::string prefix) : prefix_(std::move(prefix)) {}

  /// The lines that `bytes` completes, each with the prefix. The rest is kept.
  std::string add(std::string_view bytes);
  /// The last line, completed, where the stream ended inside one.
  std::string finish();

 private:
  // A stream that never ends its line (a progress bar) must not eat the memory: it is broken here.
  static constexpr std::size_t longestLine = 1 << 20;
  std::string prefix_;
  std::string open_;
};

}  // namespace falcon::tools
