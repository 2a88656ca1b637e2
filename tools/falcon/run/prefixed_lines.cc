#include "run/prefixed_lines.h"

#include <utility>

namespace falcon::tools {

std::string PrefixedLines::add(std::string_view bytes) {
  std::string lines;
  while (!bytes.empty()) {
    const auto end = bytes.find('\n');
    if (end == std::string_view::npos) {
      open_ += bytes;
      if (open_.size() >= longestLine) lines += finish();
      break;
    }
    lines += prefix_ + open_;
    lines += bytes.substr(0, end + 1);
    open_.clear();
    bytes.remove_prefix(end + 1);
  }
  return lines;
}

std::string PrefixedLines::finish() {
  if (open_.empty()) return {};
  return prefix_ + std::exchange(open_, {}) + "\n";
}

}  // namespace falcon::tools
