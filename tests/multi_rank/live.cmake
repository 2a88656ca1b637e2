# Live jobs in which a rank or a link turns slow and recovers, or nothing does.
if(TARGET falcon AND TARGET falcon-train)
  find_package(nlohmann_json REQUIRED)
  # What they said is what the documents show.
  falcon_test(NAME multi_rank_live ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/live_test.cc ${CMAKE_CURRENT_LIST_DIR}/trained_job.cc
                                           ${CMAKE_CURRENT_LIST_DIR}/run_harness.cc
              LINK falcon_tool_run falcon_tool_inject nlohmann_json::nlohmann_json LABELS multi_rank TIMEOUT 60 SETS_UP live_events)
  target_compile_definitions(multi_rank_live PRIVATE FALCON_BINARY="$<TARGET_FILE:falcon>" PROBE_BINARY=""
                             LIVE_EVENTS_FOLDER="${PROJECT_BINARY_DIR}/live-events")
  add_dependencies(multi_rank_live falcon falcon-train nccl)
endif()
