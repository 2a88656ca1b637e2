// NCCL_ALGO and NCCL_PROTO as they are set, and what is said about what cannot be followed.
#include <string>

#include "base/first_time.h"
#include "base/log.h"
#include "base/parameters.h"
#include "collectives/algorithm_choice.h"
#include "collectives/algorithm_preference.h"

namespace falcon::collectives {
namespace {

// Its place among protocolWords().
constexpr std::uint8_t simpleBit = 1 << 2;

PreferenceMasks readMasks(const TextParameter& parameter, std::span<const char* const> words) {
  const std::string text = parameter.value();
  const auto masks = parsePreferences(text, words);
  if (masks) return *masks;
  if (firstTime(parameter.name() + text))
    log::notice("{}={} is not followed: {}; see docs/environment.md", parameter.name(), text, masks.error().message());
  return {};
}

std::uint8_t availableFor(Operation operation) {
  std::uint8_t available = 0;
  for (const AlgorithmRow& row : algorithmTable())
    if (row.operation == operation && row.algorithm) available |= algorithmBit(row.algorithm->name);
  return available;
}

/// The operations that cannot do as preferred.
std::string unfollowed(const PreferenceMasks& masks, bool isProtocol) {
  std::string names;
  for (int i = 0; i < operationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    const std::uint8_t available = isProtocol ? simpleBit : availableFor(operation);
    if (available == 0 || availableFor(operation) == 0 || (masks[operation] & available) != 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(nameOf(operation));
  }
  return names;
}

void tellOnce(const TextParameter& parameter, const PreferenceMasks& masks, bool isProtocol) {
  if (!log::on(log::Level::info)) return;
  const std::string names = unfollowed(masks, isProtocol);
  if (!names.empty() && firstTime(parameter.name() + names))
    log::info("{}={}: the host engine has none of these for {}; what it has by default is used", parameter.name(),
              parameter.value(), names);
}

}  // namespace

PreferenceMasks preferencesFromEnvironment() {
  if (parameters::protocol.isSet())
    tellOnce(parameters::protocol, readMasks(parameters::protocol, protocolWords()), true);
  if (!parameters::algorithm.isSet()) return {};
  const PreferenceMasks masks = readMasks(parameters::algorithm, algorithmWords());
  tellOnce(parameters::algorithm, masks, false);
  return masks;
}

}  // namespace falcon::collectives
