# One target a folder. falcon_folder(base) in src/base makes the static library falcon_base of every .cc in it;
# the folders it may include are named here once, and tests/include_order checks the #include lines against the same order.

find_program(FALCON_LLD ld.lld)
# falcon_quick_linker(TARGET): it is linked in a third to a sixth of the time. Not for what users run.
function(falcon_quick_linker target)
  if(FALCON_LLD)
    target_link_options(${target} PRIVATE -fuse-ld=lld)
  endif()
endfunction()

function(falcon_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> -Wno-missing-field-initializers -fno-plt -ffunction-sections -fdata-sections)
  # The compiler collects no garbage below 1 GB: with a precompiled header of 120 MB it would search that through again and again (10 to 17 % of compiling).
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=1000000>)
  if(FALCON_SANITIZE)
    # What is found ends the process: undefined behaviour would only be printed, by a test that passes.
    target_compile_options(${target} PRIVATE -fsanitize=${FALCON_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    # g++ says so itself.
    if(CMAKE_CXX_COMPILER_ID STREQUAL Clang)
      string(REGEX MATCH "address|thread" what "${FALCON_SANITIZE}")
      string(TOUPPER "__SANITIZE_${what}__" macro)
      target_compile_definitions(${target} PRIVATE ${macro})
      falcon_quick_linker(${target})
    endif()
    if(FALCON_NO_SANITIZE)
      target_compile_options(${target} PRIVATE -fno-sanitize=${FALCON_NO_SANITIZE})
    endif()
    target_link_options(${target} PRIVATE -fsanitize=${FALCON_SANITIZE})
  endif()
endfunction()

# Under a sanitizer a library finds the functions of it in the program, and shares the program's libstdc++: of another, hidden one the sanitizer would see nothing.
if(NOT FALCON_SANITIZE)
  set(FALCON_ALL_DEFINED -Wl,--no-undefined)
endif()

# falcon_self_contained(target map): a library that lives in somebody else's process. The C++ run-time is inside and hidden: it must
# run beside any other one, in any language. gc-sections: drops what of libstdc++ nobody calls, among it the only user
# of a glibc newer than 2.34. nodelete: the service threads outlive a dlclose().
function(falcon_self_contained target map)
  if(NOT FALCON_SANITIZE)
    target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src/base/self_contained/find_object.cc ${PROJECT_SOURCE_DIR}/src/base/self_contained/exception_memory.cc)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  target_link_options(${target} PRIVATE ${FALCON_ALL_DEFINED} -Wl,--exclude-libs,ALL
    -Wl,--gc-sections -Wl,-z,now -Wl,-z,nodelete -Wl,--version-script=${map})
endfunction()

# falcon_together(target): up to 24 sources are compiled as one, in half of the time, so that names in their anonymous namespaces must differ.
# clang-tidy, for which there are no precompiled headers, wants each source by itself, and so does who changes one after the other.
function(falcon_together target)
  if(FALCON_TOGETHER AND NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 24)
  endif()
endfunction()

# falcon_apart(SOURCE...): sources of this folder that are compiled by themselves.
function(falcon_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# falcon_often_run(TARGET): tests spend much of their time in it, so it is optimised in the sanitizer builds as well.
function(falcon_often_run target)
  if(FALCON_SANITIZE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

function(falcon_folder name)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(falcon_${name} STATIC ${sources})
  target_include_directories(falcon_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_include_directories(falcon_${name} SYSTEM PUBLIC ${FALCON_FMT_INCLUDE} ${FALCON_BOOST_INCLUDE})
  target_link_libraries(falcon_${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS} rt)
  foreach(below ${ARGN})
    target_link_libraries(falcon_${name} PUBLIC falcon_${below})
  endforeach()
  falcon_compile_options(falcon_${name})
  falcon_together(falcon_${name})
  set(owner falcon_base)
  if(name IN_LIST FALCON_OFTEN_RUN)
    falcon_often_run(falcon_${name})
  else()
    set(owner ${FALCON_HEADERS})
  endif()
  falcon_precompiled(falcon_${name} ${owner} ${FALCON_STANDARD_HEADERS} <fmt/format.h>)
endfunction()

# falcon_optimised(SOURCE...): sources in which this folder's tests spend most of their time; the others are compiled for the time that this takes.
function(falcon_optimised)
  set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# falcon_test(NAME name SOURCES ... LINK ... [ALONE] [ALONE_CASES filter] [ONE_THREAD] [THREADS filter] [APART] [WAITS] [TIMEOUT s] [LABELS ...] [ENVIRONMENT ...] [SETS_UP fixture]): one
# GoogleTest binary, and a ctest entry `name.Suite.Test` for each of its cases, so that each is seen to pass, fail or be skipped. TIMEOUT is a case's.
# ALONE: it measures, so nothing else runs beside it; ALONE_CASES: those of this filter (--gtest_filter) do. ONE_THREAD: there is only one
# in it, so that the thread sanitizer has nothing to see and it is left out there; THREADS: there are more in the cases of this filter only. APART: its sources are not
# compiled together. WAITS: its cases hardly use a processor, so that one at a time is enough: several side by side would leave the cores idle.
# A failed check says its line without debug information; the libraries are what users run, and have all of it. clang compiles
# them without optimising (cmake/tests_by_clang.cmake), in half of the time of g++ with -O1; g++ would need two thirds of it for that. Under a sanitizer most is compiled without optimisation, too (src/CMakeLists.txt).
function(falcon_test_options target)
  falcon_compile_options(${target})
  falcon_quick_linker(${target})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-g0;$<IF:$<CXX_COMPILER_ID:Clang>,-O0,-O1>>)
endfunction()

# falcon_own_operator_new(TARGET): it counts or refuses allocations. clang links the thread sanitizer's operator new into every program of C++'s driver.
function(falcon_own_operator_new target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL Clang AND FALCON_SANITIZE STREQUAL thread)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(${target} PRIVATE stdc++ m)
  endif()
endfunction()

function(falcon_test)
  cmake_parse_arguments(T "ALONE;APART;ONE_THREAD;WAITS" "NAME;TIMEOUT;SETS_UP;ALONE_CASES;THREADS" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${T_NAME} ${T_SOURCES})
  target_include_directories(${T_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${T_NAME} PRIVATE ${T_LINK} GTest::gtest GTest::gmock GTest::gtest_main falcon_test_json)
  falcon_test_options(${T_NAME})
  falcon_precompiled(${T_NAME} falcon_test_headers)
  if(NOT T_APART)
    falcon_together(${T_NAME})
  endif()
  # scripts/test runs no others under a sanitizer, so they are built there only when they are named.
  if((FALCON_SANITIZE AND NOT T_LABELS MATCHES "unit|multi_rank") OR (T_ONE_THREAD AND FALCON_SANITIZE STREQUAL thread))
    set_target_properties(${T_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  falcon_test_entries(${ARGN})
endfunction()

# falcon_test_entries(NAME name [PREFIX other-name] ...as above): the entries alone, for a second round of a binary.
function(falcon_test_entries)
  cmake_parse_arguments(T "ALONE;APART;ONE_THREAD;WAITS" "NAME;PREFIX;TIMEOUT;SETS_UP;ALONE_CASES;THREADS" "SOURCES;LINK;LABELS;ENVIRONMENT" ${ARGN})
  if(T_ONE_THREAD AND FALCON_SANITIZE STREQUAL thread)
    return()
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  if(NOT T_PREFIX)
    set(T_PREFIX ${T_NAME})
  endif()
  if(FALCON_SANITIZE)
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 6")  # checked memory accesses take their time
  endif()
  set(properties TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}")
  if(T_ALONE)
    list(APPEND properties RUN_SERIAL TRUE)
  endif()
  if(T_WAITS)
    list(APPEND properties RESOURCE_LOCK who_waits)
  endif()
  if(T_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${T_ENVIRONMENT}")
  endif()
  if(T_SETS_UP)
    list(APPEND properties FIXTURES_SETUP ${T_SETS_UP})
  endif()
  set(cases TEST_PREFIX ${T_PREFIX}. NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  set(filter *)
  if(T_ALONE_CASES)
    gtest_discover_tests(${T_NAME} ${cases} TEST_FILTER "${T_ALONE_CASES}" TEST_LIST ${T_NAME}_alone PROPERTIES ${properties} RUN_SERIAL TRUE)
    set(filter "-${T_ALONE_CASES}")
  elseif(T_THREADS AND FALCON_SANITIZE STREQUAL thread)
    set(filter "${T_THREADS}")
  endif()
  if(T_LABELS STREQUAL unit)
    falcon_test_parts(${T_NAME} ${T_PREFIX} "${filter}" ${properties})
    list(APPEND properties LABELS unit_case)
  endif()
  gtest_discover_tests(${T_NAME} ${cases} TEST_FILTER "${filter}" PROPERTIES ${properties})
endfunction()

# falcon_test_parts(target prefix filter properties...): entries for processes that run an eighth of the cases each. To start one, 50 ms under a sanitizer,
# takes longer than most unit cases: scripts/test runs these entries when it runs everything, and scripts/summarize-tests tells the cases apart again.
function(falcon_test_parts target prefix filter)
  cmake_parse_arguments(P "" "" "ENVIRONMENT" ${ARGN})
  set(count 8)
  foreach(part RANGE 1 ${count})
    math(EXPR index "${part} - 1")
    add_test(NAME ${prefix}.part_${part}_of_${count} COMMAND ${target} "--gtest_filter=${filter}")
    set_tests_properties(${prefix}.part_${part}_of_${count} PROPERTIES ${P_UNPARSED_ARGUMENTS}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${count};GTEST_SHARD_INDEX=${index};${P_ENVIRONMENT}")
  endforeach()
endfunction()

# falcon_test_absent(name label reason): stands for tests that cannot be built here, so that scripts/test closes with them as well.
function(falcon_test_absent name label reason)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "not built here: ${reason}")
  set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_REGULAR_EXPRESSION "not built here: ")
endfunction()
