# One-sided messages between nodes, through the library as a program sees it.
falcon_test(NAME multi_rank_one_sided SOURCES ${CMAKE_CURRENT_LIST_DIR}/one_sided_test.cc LINK nccl forked_ranks Threads::Threads
            LABELS multi_rank TIMEOUT 300
            ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")
target_compile_definitions(multi_rank_one_sided PRIVATE NCCL_FALCON_NO_CUDA)
