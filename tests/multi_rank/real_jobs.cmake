# The real command and real jobs, as tests start and see them; compiled once for all of those tests.
if(TARGET falcon AND TARGET falcon-train)
  add_library(real_jobs STATIC ${CMAKE_CURRENT_LIST_DIR}/run_harness.cc ${CMAKE_CURRENT_LIST_DIR}/trained_job.cc)
  target_include_directories(real_jobs PUBLIC ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(real_jobs PUBLIC falcon_tool_run nlohmann_json::nlohmann_json GTest::gtest)
  target_compile_definitions(real_jobs PRIVATE FALCON_BINARY="$<TARGET_FILE:falcon>")
  falcon_test_options(real_jobs)
  add_dependencies(real_jobs falcon falcon-train nccl)
endif()
