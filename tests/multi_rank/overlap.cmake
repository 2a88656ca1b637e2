# How far host streams let computing and exchanging overlap.
if(TARGET falcon)
  find_package(nlohmann_json REQUIRED)
  add_executable(overlap_probe ${CMAKE_CURRENT_LIST_DIR}/overlap_probe.cc)
  target_link_libraries(overlap_probe PRIVATE nccl Threads::Threads)
  target_compile_definitions(overlap_probe PRIVATE NCCL_FALCON_NO_CUDA)
  falcon_compile_options(overlap_probe)

  falcon_test(NAME multi_rank_overlap ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/overlap_test.cc
              ${CMAKE_CURRENT_LIST_DIR}/run_harness.cc LINK falcon_tool_run nlohmann_json::nlohmann_json
              LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_overlap PRIVATE FALCON_BINARY="$<TARGET_FILE:falcon>"
                             PROBE_BINARY="$<TARGET_FILE:overlap_probe>")
  add_dependencies(multi_rank_overlap falcon overlap_probe)
endif()
