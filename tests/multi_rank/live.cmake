# Live jobs in which a rank or a link turns slow and recovers, or nothing does. Every case is a test of its own.
if(TARGET falcon AND TARGET falcon-train)
  find_package(nlohmann_json REQUIRED)
  falcon_test(NAME multi_rank_live SOURCES ${CMAKE_CURRENT_LIST_DIR}/live_test.cc ${CMAKE_CURRENT_LIST_DIR}/trained_job.cc
                                           ${CMAKE_CURRENT_LIST_DIR}/run_harness.cc
              CASES slow_rank slow_link_one_way slow_link_both_ways slow_link_tensor_one_way slow_link_tensor_both_ways healthy
              LINK falcon_tool_run falcon_tool_inject nlohmann_json::nlohmann_json LABELS multi_rank TIMEOUT 60)
  target_compile_definitions(multi_rank_live PRIVATE FALCON_BINARY="$<TARGET_FILE:falcon>" PROBE_BINARY=""
                             LIVE_EVENTS_FOLDER="${PROJECT_BINARY_DIR}/live-events")
  add_dependencies(multi_rank_live falcon falcon-train nccl)
  # What these two said is what the documents show.
  set_tests_properties(multi_rank_live_slow_rank multi_rank_live_slow_link_one_way PROPERTIES FIXTURES_SETUP live_events)
endif()
