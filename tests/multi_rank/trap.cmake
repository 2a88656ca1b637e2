# Suspend and resume: random programs with traps, deaths while trapped, a framework's watchdog.
falcon_test(NAME multi_rank_trap SOURCES ${CMAKE_CURRENT_LIST_DIR}/trap_stress_test.cc
            ${CMAKE_CURRENT_LIST_DIR}/trap_death_test.cc LINK nccl forked_ranks Threads::Threads LABELS multi_rank
            TIMEOUT 600)
target_compile_definitions(multi_rank_trap PRIVATE NCCL_FALCON_NO_CUDA)
set_tests_properties(multi_rank_trap PROPERTIES ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")
