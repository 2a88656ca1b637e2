# Headers of others that most sources of a kind include are parsed once a kind: parsing was 40 % of the time of compiling.
# A source still includes what it uses: clang-tidy compiles it without (scripts/lint), and so does
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON.
set(FALCON_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <condition_variable> <cstdint> <cstring> <deque>
    <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view> <thread> <utility> <vector>)

# falcon_precompiled(TARGET OWNER HEADER...): TARGET reads these headers precompiled. The first target that names an OWNER
# which is itself compiles them; the others take its result, and must be compiled alike (-fPIC or -fPIE, sanitizers).
function(falcon_precompiled target owner)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
  # For ccache: the compiler notes which precompiled header it took.
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)
endfunction()
