// An application's NVTX ranges. NVTX does nothing until a library is named in NVTX_INJECTION64_PATH: it loads that at
// its first call, once for each library of the process that has NVTX in it, and calls the one function below, which
// puts ours in the places of NVTX's.
#include <array>
#include <atomic>

#include "api/exports.h"
#include "api/guard.h"
#include "api/nvtx_abi.h"
#include "base/parameters.h"
#include "control/ranges.h"

namespace falcon::api {
namespace {

using control::Ranges;
using instrument::FoldedName;
using instrument::RangeName;

/// A domain is known by its name: several libraries of a process may make the same one. Its address is its handle.
class Domain {
 public:
  /// Never null. Those that are too many share one.
  static const Domain* of(const FoldedName& name) noexcept {
    for (std::size_t i = 0; i < table_.size(); ++i) {
      Domain& place = table_[(name.hash() + i) % table_.size()];
      std::uint64_t hash = 0;
      if (place.hash_.compare_exchange_strong(hash, name.hash(), std::memory_order_relaxed) || hash == name.hash())
        return &place;
    }
    return &other_;
  }
  /// NCCL's own, of the vendor's library below us: its calls are in the call log.
  bool isNccl() const noexcept {
    static const std::uint64_t nccl = FoldedName("NCCL").hash();
    return hash_.load(std::memory_order_relaxed) == nccl;
  }

 private:
  std::atomic<std::uint64_t> hash_{0};
  static std::array<Domain, 64> table_;
  static Domain other_;
};
constinit std::array<Domain, 64> Domain::table_;
constinit Domain Domain::other_;

bool isLeftOut(const Domain* domain) {
  return !Ranges::areRecorded() || (domain && domain->isNccl());
}

RangeName* nameOf(const nvtx::EventAttributes* attributes) {
  using Attributes = nvtx::EventAttributes;
  if (!attributes || attributes->bytes < sizeof(Attributes) || !attributes->message)
    return RangeName::of(FoldedName(""));
  switch (attributes->messageType) {
    case Attributes::narrow:
      return RangeName::of(FoldedName(static_cast<const char*>(attributes->message)));
    case Attributes::wide:
      return RangeName::of(FoldedName(static_cast<const wchar_t*>(attributes->message)));
    case Attributes::registered:
      return RangeName::at(attributes->message);
    default:
      return RangeName::of(FoldedName(""));
  }
}
template <class Character>
RangeName* nameOf(const Character* text) {
  return RangeName::of(FoldedName(text));
}

template <class Message>
int push(const Domain* domain, const Message* message) {
  if (!isLeftOut(domain)) Ranges::push(domain, Ranges::isShallow() ? nameOf(message) : nullptr);
  return nvtx::noTracking;
}
int pop(const Domain* domain) {
  if (!isLeftOut(domain)) Ranges::pop(domain);
  return nvtx::noTracking;
}
template <class Message>
std::uint64_t start(const Domain* domain, const Message* message) {
  return isLeftOut(domain) ? 0 : Ranges::start(nameOf(message));
}

constexpr const Domain* noDomain = nullptr;

template <class Message>
int rangePush(const Message* message) {
  return push(noDomain, message);
}
int rangePop() {
  return pop(noDomain);
}
template <class Message>
std::uint64_t rangeStart(const Message* message) {
  return start(noDomain, message);
}
void rangeEnd(std::uint64_t range) {
  Ranges::stop(range);
}
void domainRangeEnd(const Domain*, std::uint64_t range) {
  Ranges::stop(range);
}
template <class Character>
RangeName* registerString(const Domain*, const Character* text) {
  return nameOf(text);
}
template <class Character>
const Domain* createDomain(const Character* name) {
  return Domain::of(FoldedName(name));
}

/// Puts functions into the places of a module; those that this NVTX does not have are left out.
class Module {
 public:
  Module(const nvtx::CallbackTable& callbacks, int module) {
    if (callbacks.moduleFunctions(module, &table_, &entries_) == 0) entries_ = 0;
  }
  template <class Result, class... Arguments>
  void set(unsigned number, Result (*function)(Arguments...)) {
    if (number < entries_ && table_[number]) *table_[number] = reinterpret_cast<nvtx::Function>(function);
  }

 private:
  nvtx::FunctionTable table_ = nullptr;
  unsigned entries_ = 0;
};

void setFunctions(const nvtx::CallbackTable& callbacks) {
  using nvtx::EventAttributes;
  Module core(callbacks, nvtx::core::module);
  core.set(nvtx::core::rangeStartEx, rangeStart<EventAttributes>);
  core.set(nvtx::core::rangeStartA, rangeStart<char>);
  core.set(nvtx::core::rangeStartW, rangeStart<wchar_t>);
  core.set(nvtx::core::rangeEnd, rangeEnd);
  core.set(nvtx::core::rangePushEx, rangePush<EventAttributes>);
  core.set(nvtx::core::rangePushA, rangePush<char>);
  core.set(nvtx::core::rangePushW, rangePush<wchar_t>);
  core.set(nvtx::core::rangePop, rangePop);
  Module domains(callbacks, nvtx::domains::module);
  domains.set(nvtx::domains::rangeStartEx, start<EventAttributes>);
  domains.set(nvtx::domains::rangeEnd, domainRangeEnd);
  domains.set(nvtx::domains::rangePushEx, push<EventAttributes>);
  domains.set(nvtx::domains::rangePop, pop);
  domains.set(nvtx::domains::registerStringA, registerString<char>);
  domains.set(nvtx::domains::registerStringW, registerString<wchar_t>);
  domains.set(nvtx::domains::createA, createDomain<char>);
  domains.set(nvtx::domains::createW, createDomain<wchar_t>);
}

bool isWanted() {
  return parameters::falcon.value() && parameters::nvtx.value() == 1;
}

Status inject(nvtx::GetExportTable getExportTable, bool& injected) {
  if (!getExportTable || !isWanted()) return {};
  const auto ask = [&](nvtx::ExportTable table) { return getExportTable(static_cast<std::uint32_t>(table)); };
  const auto* callbacks = static_cast<const nvtx::CallbackTable*>(ask(nvtx::ExportTable::callbacks));
  if (!callbacks || callbacks->bytes < sizeof *callbacks || !callbacks->moduleFunctions) return {};
  const auto* info = static_cast<const nvtx::VersionInfo*>(ask(nvtx::ExportTable::versionInfo));
  if (info && info->bytes >= sizeof *info && info->setInjectionVersion) info->setInjectionVersion(nvtx::version);
  setFunctions(*callbacks);
  injected = true;
  return {};
}

}  // namespace

/// 0: with Falcon off NVTX goes on doing nothing, as if no library were named.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(nvtx::GetExportTable getExportTable) {
  bool injected = false;
  static_cast<void>(withoutExceptions("NVTX's ranges", [&] { return inject(getExportTable, injected); }));
  return injected ? 1 : 0;
}

}  // namespace falcon::api
