#include "control/succession.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace falcon::control {
namespace {

const char* inForce(AgreementKind kind) {
  constexpr const char* names[] = {"ring", "split of micro-batches", "restart", "roles"};
  return names[static_cast<int>(kind)];
}

}  // namespace

void Succession::handle(ProcessId from, const Recall& recall) {
  heard_.insert(from);
  for (const Decide& decision : recall.decisions) {
    const auto [known, isNew] = decided_.emplace(decision.agreement, decision.commit);
    if (known->second != decision.commit && !std::exchange(contradictionSaid_, true))
      log::notice(
          "process {:x} was cut off from this job while a plan was being agreed, and follows another plan than the "
          "others do (agreement {}): restart the job if it hangs",
          from, decision.agreement);
  }
  for (const Undecided& each : recall.undecided) {
    Open& open = open_.try_emplace(each.agreement, Open{each, {}, clock_.now()}).first->second;
    open.waiting.insert(from);
  }
}

std::optional<bool> Succession::decisionOn(std::uint64_t agreement) const {
  if (const auto known = decided_.find(agreement); known != decided_.end()) return known->second;
  return own_ ? own_->find(agreement) : std::nullopt;
}

Succession::Word Succession::wordOn(const Open& open, const std::set<ProcessId>& present) const {
  if (const auto decision = decisionOn(open.what.agreement)) return *decision ? Word::commit : Word::abort;
  if (clock_.now() - open.since >= patience) return Word::abort;
  // Who has handed over in order knows what it has decided, and its word is on its way.
  const auto isAwaited = [&](ProcessId process) { return present.contains(process) && !heard_.contains(process); };
  if (isAwaited(open.what.by)) return Word::none;
  const auto& members = open.what.members;
  const bool anyAwaited = members.empty() ? std::any_of(present.begin(), present.end(), isAwaited)
                                          : std::any_of(members.begin(), members.end(), isAwaited);
  return anyAwaited ? Word::none : Word::abort;
}

void Succession::tick() {
  if (open_.empty()) return;
  const auto processes = present_();
  const std::set<ProcessId> present(processes.begin(), processes.end());
  std::erase_if(open_, [&](const auto& each) {
    const Word word = wordOn(each.second, present);
    if (word == Word::none) return false;
    // Who is there hands over, and says so itself.
    if (!present.contains(each.second.what.by) && !std::exchange(lossSaid_, true))
      log::warn("the controller of this job died while a plan was being agreed: the job goes on with {} {}",
                word == Word::commit ? "the new" : "the old", inForce(each.second.what.kind));
    decide(each.second, word == Word::commit);
    return true;
  });
}

void Succession::decide(const Open& open, bool commit) {
  decided_[open.what.agreement] = commit;
  for (const ProcessId process : open.waiting) outbox_.to(process, Decide{open.what.agreement, commit});
}

}  // namespace falcon::control
