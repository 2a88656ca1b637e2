# Tests of `falcon run` and `falcon inject`: they start the real command.
if(TARGET real_jobs)
  add_executable(run_probe ${CMAKE_CURRENT_LIST_DIR}/run_probe.cc)
  target_link_libraries(run_probe PRIVATE falcon_tool_run)
  falcon_test_options(run_probe)

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/run_*_test.cc)
  # Beside ANextRun... another test's run would remove what it has left.
  falcon_test(NAME multi_rank_run ALONE_CASES "Run.ANextRun*:*InjectSlow*:InjectAnybody.Slows*:InjectMemoryHog.*:Inject.IsUndone*:Inject.SaysSo*:Inject.EndsWith*:Doctor.MeasuresItsOwn*" SOURCES ${sources}
              LINK real_jobs falcon_tool_inject LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_run PRIVATE PROBE_BINARY="$<TARGET_FILE:run_probe>")
  add_dependencies(multi_rank_run falcon run_probe)
endif()
