# Real throttling of real jobs: is the culprit among the suspects? scripts/check --full makes a hundred runs of it.
if(TARGET real_jobs)
  add_executable(loading_probe ${CMAKE_CURRENT_LIST_DIR}/loading_probe.cc)
  target_link_libraries(loading_probe PRIVATE nccl)
  target_compile_definitions(loading_probe PRIVATE NCCL_FALCON_NO_CUDA)
  falcon_test_options(loading_probe)

  falcon_test(NAME multi_rank_suspects ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/suspects_test.cc
              LINK real_jobs falcon_tool_inject LABELS multi_rank TIMEOUT 900)
  target_compile_definitions(multi_rank_suspects PRIVATE PROBE_BINARY="$<TARGET_FILE:loading_probe>")
  add_dependencies(multi_rank_suspects falcon falcon-train loading_probe)
endif()
