# The host engine between forked processes.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/collectives_*.cc)
falcon_test(NAME multi_rank_collectives SOURCES ${sources} LINK falcon_collectives forked_ranks LABELS multi_rank TIMEOUT 600)
