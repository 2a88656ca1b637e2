// ncclCollConfig_t, read defensively: what a program asks for one collective.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "api/exports.h"
#include "base/call.h"
#include "base/result.h"

namespace falcon::api {

/// A copy of the caller's structure, as long as that is, and of its list of extensions; its texts stay the caller's.
class CallConfig {
 public:
  explicit CallConfig(const ncclCollConfig_t& given, std::vector<ncclConfigExt_t> extensions, const CallLabels& labels);
  CallConfig(const CallConfig&) = delete;

  const ncclCollConfig_t& get() const { return *reinterpret_cast<const ncclCollConfig_t*>(words_.data()); }
  const CallLabels& labels() const { return labels_; }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<ncclConfigExt_t> extensions_;
  const CallLabels labels_;
};
/// Null: the caller gave none.
using CallSettings = std::shared_ptr<const CallConfig>;

/// Errors: invalidArgument (it was not initialized, or a value cannot be).
Result<CallSettings> readCallSettings(const char* function, const ncclCollConfig_t* config);

/// Whether the host engine can do what is asked: limits of device resources mean nothing to it, but a choice of
/// algorithm that must not be ignored is refused (invalidUsage).
Status checkForHost(const char* function, const ncclCollConfig_t& config);

}  // namespace falcon::api
