# Many ranks, through the library as a program sees it.
falcon_test(NAME multi_rank_scale SOURCES ${CMAKE_CURRENT_LIST_DIR}/scale_test.cc LINK nccl forked_ranks Threads::Threads
            LABELS multi_rank TIMEOUT 600
            ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")
target_compile_definitions(multi_rank_scale PRIVATE NCCL_FALCON_NO_CUDA)
