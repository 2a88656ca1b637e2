# How far host streams let computing and exchanging overlap.
if(TARGET real_jobs)
  add_executable(overlap_probe ${CMAKE_CURRENT_LIST_DIR}/overlap_probe.cc)
  target_link_libraries(overlap_probe PRIVATE nccl Threads::Threads)
  target_compile_definitions(overlap_probe PRIVATE NCCL_FALCON_NO_CUDA)
  falcon_compile_options(overlap_probe)

  falcon_test(NAME multi_rank_overlap ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/overlap_test.cc LINK real_jobs
              LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_overlap PRIVATE PROBE_BINARY="$<TARGET_FILE:overlap_probe>")
  add_dependencies(multi_rank_overlap falcon overlap_probe)
endif()
