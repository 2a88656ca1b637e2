# How long the link tests of a ring take, from few ranks to many.
if(TARGET real_jobs)
  add_executable(links_probe ${CMAKE_CURRENT_LIST_DIR}/links_probe.cc)
  target_link_libraries(links_probe PRIVATE falcon_tool_doctor)
  falcon_test_options(links_probe)

  falcon_test(NAME multi_rank_links ALONE SOURCES ${CMAKE_CURRENT_LIST_DIR}/links_test.cc LINK real_jobs
              LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_links PRIVATE PROBE_BINARY="$<TARGET_FILE:links_probe>")
  add_dependencies(multi_rank_links falcon links_probe)
endif()
