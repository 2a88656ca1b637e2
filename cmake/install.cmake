# What a site installs: cmake --install build/release --prefix DIR, or cpack in build/release for a .deb and a tarball.
# Nothing lies where the vendor's NCCL has it: the libraries are in lib/nccl-falcon and the headers in include/nccl-falcon, so that both can be
# installed and neither shadows the other. The tree can be moved: programs and modules find each other from where they are.
include(CMakePackageConfigHelpers)

set(FALCON_INSTALL_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/nccl-falcon)
set(FALCON_INSTALL_CMAKEDIR ${CMAKE_INSTALL_LIBDIR}/cmake/NcclFalcon)
set(FALCON_INSTALL_PKGCONFIGDIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# What is installed is stripped, whoever installs it and how. All rules stand in this file, since they run in their order.
install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)")

set_target_properties(nccl PROPERTIES EXPORT_NAME nccl)
set_target_properties(nccl-falcon PROPERTIES EXPORT_NAME preload)
install(TARGETS nccl nccl-falcon EXPORT NcclFalcon LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR}
        INCLUDES DESTINATION ${FALCON_INSTALL_INCLUDEDIR})
# Plugins for NCCL as it is: found by LD_LIBRARY_PATH, or named by their paths.
install(TARGETS nccl-profiler-falcon nccl-tuner-falcon LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR})
install(TARGETS nccl-falcon-core LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR})
# For a stock NCCL too, which finds them there by path, or by name where that folder is in LD_LIBRARY_PATH.
install(TARGETS nccl-net-falcon-socket LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR})
if(TARGET nccl-net-falcon-verbs)
  install(TARGETS nccl-net-falcon-verbs LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR})
endif()
# By itself, since all of the package would depend on UCX for it: cmake --install build/release --component ucx
if(TARGET nccl-net-falcon-ucx)
  install(TARGETS nccl-net-falcon-ucx LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR} COMPONENT ucx EXCLUDE_FROM_ALL)
endif()
# Opened when first needed, from beside the library that wants them. The path of the OpenBLAS that it was linked to is dropped: at a site the
# loader knows where its own is.
foreach(module falcon_compute falcon_gpu_module falcon_metrics)
  if(TARGET ${module})
    install(TARGETS ${module} LIBRARY DESTINATION ${FALCON_INSTALL_LIBDIR})
  endif()
endforeach()
foreach(program falcon falcon-train)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${FALCON_LIBRARIES_FROM_PROGRAMS}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

install(FILES include/nccl.h include/nccl_falcon.h include/falcon_net_state.h DESTINATION ${FALCON_INSTALL_INCLUDEDIR})
install(DIRECTORY share/ DESTINATION ${CMAKE_INSTALL_DATADIR}/nccl-falcon)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/nccl-falcon FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.json")
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/nccl-falcon)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/nccl-falcon RENAME copyright)

# find_package(NcclFalcon): NcclFalcon::nccl to link, NcclFalcon::preload for the path of the preload library.
install(EXPORT NcclFalcon NAMESPACE NcclFalcon:: FILE NcclFalconTargets.cmake DESTINATION ${FALCON_INSTALL_CMAKEDIR})
configure_package_config_file(cmake/NcclFalconConfig.cmake.in ${PROJECT_BINARY_DIR}/installed/NcclFalconConfig.cmake
                              INSTALL_DESTINATION ${FALCON_INSTALL_CMAKEDIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/installed/NcclFalconConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/installed/NcclFalconConfig.cmake ${PROJECT_BINARY_DIR}/installed/NcclFalconConfigVersion.cmake
        DESTINATION ${FALCON_INSTALL_CMAKEDIR})

# pkg-config nccl-falcon. Paths are told from where the file lies.
file(RELATIVE_PATH FALCON_PREFIX_FROM_PKGCONFIG ${CMAKE_INSTALL_PREFIX}/${FALCON_INSTALL_PKGCONFIGDIR} ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" FALCON_PREFIX_FROM_PKGCONFIG "${FALCON_PREFIX_FROM_PKGCONFIG}")
configure_file(cmake/nccl-falcon.pc.in ${PROJECT_BINARY_DIR}/installed/nccl-falcon.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/installed/nccl-falcon.pc DESTINATION ${FALCON_INSTALL_PKGCONFIGDIR})

set(CPACK_PACKAGE_NAME nccl-falcon)
set(CPACK_PACKAGE_VENDOR "NCCL Falcon")
# Who builds a package answers for it, as with Debian's own tools: DEBFULLNAME and DEBEMAIL, else the user at this host.
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(contact "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
else()
  cmake_host_system_information(RESULT host QUERY FQDN)
  execute_process(COMMAND id -un OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(contact "${user} <${user}@${host}>")
endif()
set(FALCON_PACKAGE_CONTACT "${contact}" CACHE STRING "Who answers for packages built here: Name <address>")
set(CPACK_PACKAGE_CONTACT "${FALCON_PACKAGE_CONTACT}")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "finds slow ranks and links in jobs that run on NCCL")
set(CPACK_PACKAGE_DESCRIPTION "Stands before a training job's NCCL, or in its place, notices when iterations lengthen, names the slow\n\
rank or link, and works around it while the job keeps running.\n\
It replaces no file of the vendor's: programs take it by falcon exec, or by a path.")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR TGZ)
set(CPACK_STRIP_FILES TRUE)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
find_program(FALCON_SHLIBDEPS dpkg-shlibdeps)
mark_as_advanced(FALCON_SHLIBDEPS)
if(FALCON_SHLIBDEPS)
  list(APPEND CPACK_GENERATOR DEB)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
endif()
include(CPack)
