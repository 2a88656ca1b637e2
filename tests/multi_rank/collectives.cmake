# The host engine between forked processes.
# Every forked rank ends with the sanitizer's second of waiting for late races, but has none to wait for.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/collectives_*.cc)
falcon_test(NAME multi_rank_collectives SOURCES ${sources} LINK falcon_collectives forked_ranks rank_buffers LABELS multi_rank TIMEOUT 600
            ENVIRONMENT "TSAN_OPTIONS=atexit_sleep_ms=0")

# The same once more, each rank in a cpu cgroup of its own as in containers.
if(NOT FALCON_SANITIZE)
  falcon_test_entries(NAME multi_rank_collectives PREFIX multi_rank_collectives_in_cgroups LABELS multi_rank TIMEOUT 600
                      ENVIRONMENT FALCON_TEST_CGROUPS=1)
endif()
