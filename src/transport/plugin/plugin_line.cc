#include "transport/plugin/plugin_line.h"

#include <new>

#include "base/log.h"
#include "base/parameters.h"
#include "plugin/result_text.h"

namespace falcon::transport {
namespace {

// Plugins pin what they register page by page.
constexpr std::size_t page = 4096;

std::byte* aligned(std::size_t bytes) {
  void* memory = std::aligned_alloc(page, bytes);
  if (!memory) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

}  // namespace

PluginSlots::PluginSlots(std::size_t chunkBytes)
    : slotBytes_(pluginSlotBytes(chunkBytes)),
      bytes_((chunkSlots * slotBytes_ + page - 1) / page * page),
      memory_(aligned(bytes_)) {}

Error PluginLine::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  return *failure_;
}

Error PluginLine::failed(std::string_view function, net::ResultCode result) {
  return fail(log::decided(
      Error::remote("net plugin {}: {} for {} returned {}: the connection is lost, or the plugin's network does not "
                    "work; NCCL_DEBUG=INFO shows what the plugin says of it",
                    calls().name(), function, peerName_, plugin::resultText(result))));
}

Status PluginLine::stillConnecting() {
  const Nanoseconds limit = parameters::initTimeout.value();
  if (SystemClock::instance().now() - connectingSince_ < limit) return {};
  return fail(log::decided(
      Error::remote("net plugin {}: no connection with {} within {} s (NCCL_FALCON_INIT_TIMEOUT): see whether the "
                    "plugin's devices reach each other",
                    calls().name(), peerName_, seconds(limit))));
}

}  // namespace falcon::transport
