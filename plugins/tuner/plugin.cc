#include "tuner/plugin.h"

#include <memory>

#include "base/contained.h"
#include "base/input_file.h"
#include "base/log.h"
#include "base/parameters.h"
#include "tuner/rules.h"

namespace falcon::tuner {
namespace {

/// Of a communicator: one thread at a time asks.
struct Context {
  std::vector<Rule> rules;
  int ranks = 1;
  std::uint64_t asked = 0;
};

Result<std::vector<Rule>> rulesOfEnvironment() {
  const std::string file = parameters::tunerRules.value();
  if (file.empty()) return std::vector<Rule>();
  const auto text = readInputFile(file);
  if (!text) return text.error();
  auto rules = parseRules(*text);
  if (!rules) return Error::invalidUsage("{}={}: {}", parameters::tunerRules.name(), file, rules.error().message());
  return rules;
}

}  // namespace

plugin::ResultCode begin(void** context, std::size_t ranks) noexcept {
  plugin::ResultCode result = plugin::internalError;
  const auto refuse = [](std::string_view why) { log::notice("Falcon's tuner plugin is not used: {}", why); };
  contained(
      [&] {
        auto rules = rulesOfEnvironment();
        if (!rules) return refuse(rules.error().message());
        *context = std::make_unique<Context>(Context{std::move(*rules), static_cast<int>(ranks)}).release();
        result = plugin::success;
      },
      refuse);
  return result;
}

plugin::ResultCode getCollInfo(void* context, plugin::TunedFunction function, std::size_t bytes, int, float** costs,
                               int algorithms, int protocols, int, int* channels) {
  auto& own = *static_cast<Context*>(context);
  const AskedCall call{function, bytes, own.asked++, own.ranks};
  if (own.rules.empty()) return plugin::success;
  plugin::ResultCode result = plugin::internalError;
  contained(
      [&] {
        // NCCL hands a table of floats on as a pointer to pointers.
        follow(own.rules, call, reinterpret_cast<float*>(costs), algorithms, protocols, channels);
        result = plugin::success;
      },
      [](const char*) {});
  return result;
}

plugin::ResultCode end(void* context) {
  delete static_cast<Context*>(context);
  return plugin::success;
}

}  // namespace falcon::tuner
