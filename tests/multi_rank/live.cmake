# Live jobs in which a rank or a link turns slow and recovers, or nothing does.
if(TARGET real_jobs)
  # What they said is what the documents show.
  falcon_test(NAME multi_rank_live ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/live_test.cc
              LINK real_jobs falcon_tool_inject LABELS multi_rank TIMEOUT 120 SETS_UP live_events)
  target_compile_definitions(multi_rank_live PRIVATE LIVE_EVENTS_FOLDER="${PROJECT_BINARY_DIR}/live-events")
  add_dependencies(multi_rank_live falcon falcon-train nccl)
endif()
