# What `falcon` shows of real jobs from outside: who hangs, recordings, traces, the live view.
if(TARGET falcon)
  find_package(nlohmann_json REQUIRED)
  add_executable(stuck_probe ${CMAKE_CURRENT_LIST_DIR}/stuck_probe.cc)
  target_link_libraries(stuck_probe PRIVATE nccl)
  target_compile_definitions(stuck_probe PRIVATE NCCL_FALCON_NO_CUDA)
  falcon_compile_options(stuck_probe)

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/watched_*_test.cc)
  falcon_test(NAME multi_rank_watched SOURCES ${sources} ${CMAKE_CURRENT_LIST_DIR}/run_harness.cc
              LINK falcon_tool_run nlohmann_json::nlohmann_json LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_watched PRIVATE FALCON_BINARY="$<TARGET_FILE:falcon>"
                             PROBE_BINARY="$<TARGET_FILE:stuck_probe>")
  add_dependencies(multi_rank_watched falcon stuck_probe)
  set_tests_properties(multi_rank_watched PROPERTIES RESOURCE_LOCK machine)
endif()
