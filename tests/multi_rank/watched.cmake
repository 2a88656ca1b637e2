# What `falcon` shows of real jobs from outside: who hangs, recordings, traces, the live view.
if(TARGET real_jobs)
  find_package(nlohmann_json REQUIRED)
  add_executable(stuck_probe ${CMAKE_CURRENT_LIST_DIR}/stuck_probe.cc)
  target_link_libraries(stuck_probe PRIVATE nccl falcon_instrument)
  target_compile_definitions(stuck_probe PRIVATE NCCL_FALCON_NO_CUDA)
  falcon_compile_options(stuck_probe)

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/watched_*_test.cc)
  falcon_test(NAME multi_rank_watched ALONE_CASES "StatusNet.*:DoctorAttached.*:InjectJob.*" SOURCES ${sources}
              LINK real_jobs LABELS multi_rank TIMEOUT 300)
  target_compile_definitions(multi_rank_watched PRIVATE PROBE_BINARY="$<TARGET_FILE:stuck_probe>"
                             FALCON_NET_SOCKET="$<TARGET_FILE:nccl-net-falcon-socket>")
  add_dependencies(multi_rank_watched falcon stuck_probe nccl-net-falcon-socket)
  if(FALCON_NVTX_INCLUDE)
    add_executable(nvtx_probe ${CMAKE_CURRENT_LIST_DIR}/nvtx_probe.cc)
    target_include_directories(nvtx_probe SYSTEM PRIVATE ${FALCON_NVTX_INCLUDE})
    target_link_libraries(nvtx_probe PRIVATE nccl ${CMAKE_DL_LIBS})
    target_compile_definitions(nvtx_probe PRIVATE NCCL_FALCON_NO_CUDA)
    falcon_compile_options(nvtx_probe)
    target_compile_definitions(multi_rank_watched PRIVATE NVTX_PROBE_BINARY="$<TARGET_FILE:nvtx_probe>")
    add_dependencies(multi_rank_watched nvtx_probe)
  endif()
endif()
