#include "inject/traffic_limit.h"

#include <cmath>
#include <sstream>
#include <vector>

#include "machine/net_namespace.h"
#include "machine/program.h"

namespace falcon::tools {

Status TrafficLimit::mayBeApplied() const {
  const std::string& interface = sender_.interface;
  const auto present = tc(fmt::format("qdisc show dev {}", interface));
  if (!present) return present.error();
  // The kernel's own queue has the handle 0:.
  std::istringstream words(*present);
  std::string qdisc, kind, handle;
  if (!(words >> qdisc >> kind >> handle) || handle == "0:") return {};
  return Error::system(
      "the interface {} of rank {} has a queue ({} {}) that was not made here; remove it first, in the rank's network "
      "namespace: tc qdisc del dev {} root",
      interface, sender_.rank, kind, handle, interface);
}

Status TrafficLimit::apply() const {
  const std::string& interface = sender_.interface;
  std::vector<std::string> steps;
  const auto present = tc(fmt::format("qdisc show dev {}", interface));
  if (!present || present->find("htb 1: root") == std::string::npos)
    steps.push_back(fmt::format("qdisc add dev {} root handle 1: htb", interface));
  steps.push_back(classCommand("add"));
  const std::string filter = fmt::format("filter add dev {} parent 1: protocol ip", interface);
  const std::string pair = fmt::format("match ip src {}/32 match ip dst {}/32", sender_.address, receiver_.address);
  // Acknowledgements of the opposite direction must not queue behind the data, or that direction would become slow as
  // well: packets with an IP length below 64 pass by (1:0 is the direct queue). No data worth mentioning fits in them.
  steps.push_back(fmt::format("{} prio {} u32 {} match u16 0x0000 0xffc0 at 2 flowid 1:0", filter,
                              acknowledgementPriority(), pair));
  steps.push_back(fmt::format("{} prio {} u32 {} flowid {}", filter, dataPriority(), pair, classId()));
  for (const auto& step : steps)
    if (auto done = tc(step); !done) return done.error();
  return {};
}

// The burst is small, so that even short messages feel the limit; the quantum only silences a warning.
std::string TrafficLimit::classCommand(const char* verb) const {
  return fmt::format(
      "class {0} dev {1} parent 1: classid {2} htb rate {3}bit ceil {3}bit burst 16k cburst 16k quantum 60000", verb,
      sender_.interface, classId(), std::llround(bitsPerSecond_));
}

Status TrafficLimit::change() const {
  const auto done = tc(classCommand("change"));
  return done ? Status() : done.error();
}

void TrafficLimit::remove() const {
  const std::string& interface = sender_.interface;
  for (const int priority : {acknowledgementPriority(), dataPriority()})
    (void)tc(fmt::format("filter del dev {} parent 1: prio {}", interface, priority));
  (void)tc(fmt::format("class del dev {} classid {}", interface, classId()));
  // Somebody may have put classes of their own beside ours, or another queue in the place of ours.
  const auto queues = tc(fmt::format("qdisc show dev {}", interface));
  const auto classes = tc(fmt::format("class show dev {}", interface));
  const bool ours = queues && queues->find("htb 1: root") != std::string::npos && classes &&
                    classes->find("class htb") == std::string::npos;
  if (ours) (void)tc(fmt::format("qdisc del dev {} root", interface));
}

Result<LinkTraffic> TrafficLimit::traffic() const {
  const auto text = tc(fmt::format("-s class show dev {}", sender_.interface));
  if (!text) return text.error();
  return parseClassCounters(*text, classId());
}

Result<std::string> TrafficLimit::tc(const std::string& words) const {
  const auto netNamespace = openNetNamespace(sender_.netNamespace);
  if (!netNamespace) return netNamespace.error();
  std::vector<std::string> command{"tc"};
  std::istringstream stream(words);
  for (std::string word; stream >> word;) command.push_back(word);
  return runProgram({command, netNamespace->get()});
}

// 1:0 is the queue itself.
std::string TrafficLimit::classId() const {
  return fmt::format("1:{:x}", receiver_.rank + 1);
}

LinkTraffic parseClassCounters(const std::string& text, const std::string& classId) {
  const auto begin = text.find("class htb " + classId + " ");
  if (begin == std::string::npos) return {};
  const std::string ours = text.substr(begin, text.find("class htb ", begin + 1) - begin);
  LinkTraffic found;
  std::istringstream words(ours);
  std::string previous;
  for (std::string word; words >> word; previous = word) {
    if (previous == "Sent") found.bytes = std::stoull(word);
    if (word == "pkt") found.packets = std::stoull(previous);
    if (previous == "overlimits") found.held = std::stoull(word);
  }
  return found;
}

}  // namespace falcon::tools
