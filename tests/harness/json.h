// JSON for all tests: compiled once, in json.cc, which takes the compiler as long as a test of usual size does.
#pragma once

#include <nlohmann/json.hpp>

extern template class nlohmann::basic_json<>;
