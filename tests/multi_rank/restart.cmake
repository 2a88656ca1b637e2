# Live jobs that are restarted since a rank is slow and nothing else helps.
if(TARGET real_jobs)
  falcon_test(NAME multi_rank_restart ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/restart_test.cc
              LINK real_jobs falcon_tool_demo falcon_tool_inject LABELS multi_rank TIMEOUT 180)
  add_dependencies(multi_rank_restart falcon falcon-train nccl)
endif()
