# For tests/CMakeLists.txt: in the release build clang compiles all C++ from there down, where it is there, and the compiler of what users run all else.
# Both take the same standard library. CMake has one compiler of a language in a project, but reads these variables in each folder; they are what its
# own Compiler/Clang.cmake sets. `cmake --preset release -DFALCON_CLANG=` leaves the tests to g++, which takes twice as long.
find_program(FALCON_CLANG clang++)
if(FALCON_CLANG AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
  set(CMAKE_CXX_COMPILER ${FALCON_CLANG})
  set(CMAKE_CXX_COMPILER_ID Clang)
  set(CMAKE_PCH_EXTENSION .pch)
  set(CMAKE_PCH_PROLOGUE "#pragma clang system_header")
  set(CMAKE_CXX_COMPILE_OPTIONS_INVALID_PCH "")
  set(CMAKE_CXX_COMPILE_OPTIONS_INSTANTIATE_TEMPLATES_PCH -fpch-instantiate-templates)
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE> -Xclang -include -Xclang <PCH_HEADER>)
  set(CMAKE_CXX_COMPILE_OPTIONS_CREATE_PCH -Xclang -emit-pch -Xclang -include -Xclang <PCH_HEADER> -x c++-header)
endif()
