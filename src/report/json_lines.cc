#include "report/json_lines.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace falcon::report {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
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
  FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
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
