#include "plugin/tuner/tuner_directory.h"

#include <unistd.h>

#include <algorithm>

#include "base/log.h"
#include "base/parameters.h"
#include "base/per_process.h"
#include "plugin/result_text.h"

namespace falcon::plugin {
namespace {

constinit PerProcess<TunerDirectory> tunerOfThisProcess;

}  // namespace

int TunerSession::ownProcess() {
  return getpid();
}

TunerSession::~TunerSession() {
  // A forked child's plugin is its parent's as it was at that moment: it is not called.
  if (getpid() != process_) return;
  if (const ResultCode result = calls_.finalize(context_); result != success)
    log::notice("tuner plugin {}: finalize returned {}", calls_.name(), resultText(result));
}

std::optional<int> TunerSession::choose(TunedFunction function, std::size_t bytes, int operations,
                                        CostTable& costs) const {
  int channels = 0;
  const ResultCode result = calls_.choose(context_, function, bytes, operations, costs, &channels);
  if (result == success) return std::max(channels, 0);
  if (!told_.exchange(true))
    log::notice("tuner plugin {}: getCollInfo returned {}; the built-in choice is used", calls_.name(),
                resultText(result));
  return std::nullopt;
}

TunerDirectory& processTuner() {
  return tunerOfThisProcess.get();
}

TunerDirectory::TunerDirectory() : TunerDirectory(parameters::tunerPlugin.name(), parameters::tunerPlugin.value()) {}

std::unique_ptr<TunerSession> TunerDirectory::open(const TunedCommunicator& communicator) {
  const std::lock_guard lock(mutex_);
  const TunerCalls* calls = plugin_.get(tunerVersions);
  if (!calls) return nullptr;
  void* context = nullptr;
  if (const ResultCode result = calls->init(communicator, &context); result != success) {
    plugin_.decline("init returned " + resultText(result));
    return nullptr;
  }
  return std::make_unique<TunerSession>(*calls, context);
}

}  // namespace falcon::plugin
