#include "core/plugin_log.h"

#include <atomic>
#include <string>

#include "base/log_receiver.h"
#include "core/network.h"

namespace falcon::net {
namespace {

using transport::net::LogLevel;

std::atomic<transport::net::Logger> nccls{nullptr};
constexpr unsigned long netSubsystem = 0x10;  // NCCL_NET, for NCCL_DEBUG_SUBSYS

void write(log::Level level, std::string_view message) {
  const LogLevel its = level == log::Level::warn    ? LogLevel::warn
                       : level == log::Level::trace ? LogLevel::trace
                                                    : LogLevel::info;
  const std::string text(message);
  nccls.load(std::memory_order_acquire)(its, netSubsystem, networkName, 0, "NET/%s: %s", networkName, text.c_str());
}

}  // namespace

void logTo(transport::net::Logger logger) {
  nccls.store(logger, std::memory_order_release);
  log::handOver(write);
}

}  // namespace falcon::net
