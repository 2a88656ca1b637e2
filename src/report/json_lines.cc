#include "report/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace falcon::report {
namespace {

/// Bytes of the UTF-8 character that the text begins with; 0 where it begins with none (RFC 3629: no detours, no
/// surrogates, nothing above U+10FFFF).
std::size_t characterBytes(std::string_view text) {
  const auto byte = [&](std::size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const auto follows = [&](std::size_t at, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(at) >= low && byte(at) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

/// What is no text (a host's name may hold anything) becomes the replacement character: readers refuse a line for less.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text[0];
    const std::size_t bytes = characterBytes(text);
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += bytes > 0 ? text.substr(0, bytes) : std::string_view("\\ufffd");
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out + '"';
}

std::string culpritJson(const Culprit& culprit) {
  if (culprit.kind == CulpritKind::rank) return fmt::format(R"({{"kind":"rank","rank":{}}})", culprit.rank);
  return fmt::format(R"({{"kind":"link","from":{},"to":{},"both_ways":{}}})", culprit.link.from, culprit.link.to,
                     culprit.bothWays);
}

}  // namespace

std::string toJson(const Event& event) {
  std::string json =
      fmt::format(R"({{"v":{},"kind":"{}","time_s":{:.6f},"wall_time_s":{:.3f},"iteration":{})", eventSchemaVersion,
                  nameOf(event.kind), seconds(event.time), event.wallTime, event.iteration);
  if (event.beforeMilliseconds > 0) json += fmt::format(R"(,"before_ms":{:.3f})", event.beforeMilliseconds);
  if (event.afterMilliseconds > 0) json += fmt::format(R"(,"after_ms":{:.3f})", event.afterMilliseconds);
  if (event.confidence > 0) json += fmt::format(R"(,"confidence":{:.3f})", event.confidence);
  if (event.durationSeconds > 0) json += fmt::format(R"(,"duration_s":{:.3f})", event.durationSeconds);
  if (event.culprit.kind != CulpritKind::none) json += ",\"culprit\":" + culpritJson(event.culprit);
  return json + ",\"text\":" + quoted(event.text) + "}";
}

Result<JsonLinesSink> JsonLinesSink::open(const std::string& path) {
  FileDescriptor file = newDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return Error::system("events file {} cannot be opened: {}", path, std::strerror(errno));
  return JsonLinesSink(std::move(file), path);
}

void JsonLinesSink::add(const Event& event) {
  const std::string line = toJson(event) + "\n";
  if (::write(file_.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) || failed_) return;
  failed_ = true;
  log::notice("events file {} cannot be written: {}; later events may be missing there", path_, std::strerror(errno));
}

}  // namespace falcon::report
