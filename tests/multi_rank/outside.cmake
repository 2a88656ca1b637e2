# What stands around a running job and looks at it from outside: metrics for a real Prometheus, watch, report.
if(TARGET real_jobs)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/outside_*_test.cc)
  falcon_test(NAME multi_rank_outside SOURCES ${sources}
              LINK real_jobs json_schema LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_outside PRIVATE PROBE_BINARY="$<TARGET_FILE:falcon>" FALCON_TRAIN_BINARY="$<TARGET_FILE:falcon-train>")
  add_dependencies(multi_rank_outside falcon falcon-train)
endif()
