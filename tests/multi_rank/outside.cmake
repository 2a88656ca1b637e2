# What stands around a running job and looks at it from outside: metrics for a real Prometheus, watch, report.
if(TARGET falcon AND TARGET falcon-train)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/outside_*_test.cc)
  falcon_test(NAME multi_rank_outside ALONE SOURCES ${sources} ${CMAKE_CURRENT_LIST_DIR}/run_harness.cc
              LINK falcon_tool_run json_schema nlohmann_json::nlohmann_json LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_outside PRIVATE FALCON_BINARY="$<TARGET_FILE:falcon>"
                             PROBE_BINARY="$<TARGET_FILE:falcon>" FALCON_TRAIN_BINARY="$<TARGET_FILE:falcon-train>")
  add_dependencies(multi_rank_outside falcon falcon-train)
endif()
