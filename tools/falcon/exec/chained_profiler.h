// A profiler plugin that the user has, beside ours: the vendor's NCCL takes one a process.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace falcon::tools {

/// What makes the program's NCCL tell our plugin, and that the one which NCCL_PROFILER_PLUGIN names: values of
/// NCCL_PROFILER_PLUGIN and NCCL_FALCON_CHAINED_PROFILER. Nothing where the variables stay as they are: the user has
/// none, or has chained one already, or it is not sure that both sides can do it (NCCL from 2.27 on, which is found as
/// for `--check`; a plugin of version 4 to 7, which is loaded in a child process for that).
std::optional<std::pair<std::string, std::string>> chainedProfiler(const std::vector<std::string>& program);

}  // namespace falcon::tools
