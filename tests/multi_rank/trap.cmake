# Suspend and resume: random programs with traps, deaths while trapped, a framework's watchdog.
falcon_test(NAME multi_rank_trap APART SOURCES ${CMAKE_CURRENT_LIST_DIR}/trap_stress_test.cc
            ${CMAKE_CURRENT_LIST_DIR}/trap_death_test.cc ${CMAKE_CURRENT_LIST_DIR}/trap_controller_test.cc
            LINK nccl forked_ranks falcon_control falcon_gpu Threads::Threads LABELS multi_rank TIMEOUT 600
            ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")
target_compile_definitions(multi_rank_trap PRIVATE NCCL_FALCON_NO_CUDA)
# The same over a stand-in for the vendor's library whose kernels spin.
falcon_test(NAME multi_rank_drain SOURCES ${CMAKE_CURRENT_LIST_DIR}/drain_stress_test.cc
            ${CMAKE_CURRENT_LIST_DIR}/drain_lifted_test.cc LINK nccl forked_ranks drain_programs Threads::Threads ${CMAKE_DL_LIBS} LABELS multi_rank TIMEOUT 900
            ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")
target_compile_definitions(multi_rank_drain PRIVATE NCCL_FALCON_NO_CUDA
                                                    FALCON_SPINNING_VENDOR="$<TARGET_FILE:spinning_vendor>"
                                                    FALCON_SPINNING_CUDA="$<TARGET_FILE:spinning_cuda>")
add_dependencies(multi_rank_drain spinning_vendor spinning_cuda)
# Measured on the device: a job of its own, as it is told apart by its times.
falcon_test(NAME multi_rank_device_times SOURCES ${CMAKE_CURRENT_LIST_DIR}/device_times_test.cc ALONE
            LINK nccl forked_ranks Threads::Threads ${CMAKE_DL_LIBS} LABELS multi_rank
            ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")
target_compile_definitions(multi_rank_device_times PRIVATE NCCL_FALCON_NO_CUDA
                                                           FALCON_SPINNING_VENDOR="$<TARGET_FILE:spinning_vendor>"
                                                           FALCON_SPINNING_CUDA="$<TARGET_FILE:spinning_cuda>")
add_dependencies(multi_rank_device_times spinning_vendor spinning_cuda)
