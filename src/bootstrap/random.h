// Random values that nobody can guess, and hashes that all members compute alike.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/result.h"
#include "transport/reactor.h"

namespace falcon::bootstrap {

/// From the kernel's generator; an error (system) where it gives nothing.
Result<std::uint64_t> randomNumber();
Result<transport::Secret> randomSecret();

/// Another secret from one that both sides know, so that it need not be sent: different for each use and number.
transport::Secret derivedSecret(const transport::Secret& secret, std::string_view use, std::uint64_t number);

/// The same on every machine and in every release.
std::uint64_t hashOf(std::initializer_list<std::uint64_t> values);
std::uint64_t hashOf(std::string_view text);

}  // namespace falcon::bootstrap
