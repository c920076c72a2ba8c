# What `cmake --install` puts where, and the Debian packages that `cpack` makes of it: `shardwise`,
# the program with its data, and `libshardwise-dev`, the libraries. Everything is found relative to
# the program, so that an installed tree can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(SHARDWISE_CATALOG_HOME "${CMAKE_INSTALL_DATADIR}/shardwise/catalog")
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)

foreach(program shardwise shardwise-serve shardwise-calibrate)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME)
  endif()
endforeach()
# Not in the packages, which would then bring MPI along.
if(TARGET shardwise-sweep-mpi)
  install(TARGETS shardwise-sweep-mpi RUNTIME COMPONENT mpi)
endif()
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/catalog/"
  DESTINATION "${SHARDWISE_CATALOG_HOME}"
  FILES_MATCHING
  PATTERN "*.json"
  PATTERN "*.md"
)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/README.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME copyright)

# Completions and manual pages, made by the program that was built.
set(shell_pages "${PROJECT_BINARY_DIR}/shell_pages")
add_custom_command(
  OUTPUT "${shell_pages}/names"
  COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:shardwise>" "-DFOLDER=${shell_pages}" -P
          "${CMAKE_CURRENT_LIST_DIR}/ShellPages.cmake"
  DEPENDS shardwise "${CMAKE_CURRENT_LIST_DIR}/ShellPages.cmake"
  COMMENT "Writing completions and manual pages"
  VERBATIM
)
add_custom_target(shell_pages ALL DEPENDS "${shell_pages}/names")
install(DIRECTORY "${shell_pages}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}")
install(
  FILES "${shell_pages}/completions/shardwise"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
)
install(
  FILES "${shell_pages}/completions/shardwise.fish"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d"
)
# zsh looks in the first folder below /usr/local, in the second below Debian's /usr.
foreach(folder site-functions vendor-completions)
  install(
    FILES "${shell_pages}/completions/_shardwise"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/${folder}"
  )
endforeach()

# The libraries, for find_package(shardwise): without what only the command line needs.
foreach(folder catalog simulator planner)
  set_target_properties(shardwise_${folder} PROPERTIES EXPORT_NAME ${folder})
  install(
    TARGETS shardwise_${folder}
    EXPORT shardwise-targets
    ARCHIVE COMPONENT development
  )
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/shardwise"
    COMPONENT development
    FILES_MATCHING
    PATTERN "*.hpp"
    REGEX "/planner/(commands|report|serve|shell|sweep)$" EXCLUDE
    REGEX "/catalog/(devices|frameworks|models|networks|nodes|prices|profiles|reading|runs)$" EXCLUDE
  )
endforeach()
set(config_home "${CMAKE_INSTALL_LIBDIR}/cmake/shardwise")
configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/shardwise-config.cmake.in"
  "${PROJECT_BINARY_DIR}/shardwise-config.cmake"
  INSTALL_DESTINATION "${config_home}"
  PATH_VARS SHARDWISE_CATALOG_HOME
)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/shardwise-config-version.cmake" COMPATIBILITY SameMinorVersion
)
install(
  FILES "${PROJECT_BINARY_DIR}/shardwise-config.cmake"
        "${PROJECT_BINARY_DIR}/shardwise-config-version.cmake"
        "${CMAKE_CURRENT_LIST_DIR}/YamlCpp.cmake"
  DESTINATION "${config_home}"
  COMPONENT development
)
install(
  EXPORT shardwise-targets
  NAMESPACE shardwise::
  DESTINATION "${config_home}"
  COMPONENT development
)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME shardwise)
set(CPACK_PACKAGE_CONTACT "The shardwise authors <shardwise@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "forecasts whether a distributed training run fits, on which plan, and how fast")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_ALL runtime development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME shardwise)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libshardwise-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
    "shardwise (= ${PROJECT_VERSION}), libboost-dev, libyaml-cpp-dev"
)
include(CPack)
