# One archive for a C++ user: the public API and the rooms under it. Such a program is linked with GCC's libstdc++.
include(CMakePackageConfigHelpers)

# What the public header includes, and what these values are made of.
set(api_headers queue verdict request device base)
set(api_rooms api answers view usage simulate machines job lease site store source sys ${api_headers} fmt)
foreach(room IN LISTS api_rooms)
  get_target_property(kind berth_${room} TYPE)
  if(kind STREQUAL "STATIC_LIBRARY")
    list(APPEND api_objects $<TARGET_OBJECTS:berth_${room}>)
  endif()
endforeach()
add_library(berth_archive STATIC ${api_objects})
set_target_properties(berth_archive PROPERTIES OUTPUT_NAME berth EXPORT_NAME berth LINKER_LANGUAGE CXX)
target_compile_features(berth_archive PUBLIC cxx_std_23)
target_link_libraries(berth_archive PUBLIC ${CMAKE_DL_LIBS})
target_include_directories(berth_archive INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS berth_archive EXPORT berth ARCHIVE COMPONENT library)
# What others may include of them, and nothing else.
foreach(room IN LISTS api_headers)
  file(STRINGS src/core/public.txt headers REGEX "^${room}/")
  list(TRANSFORM headers PREPEND src/core/)
  install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth/${room} COMPONENT library)
endforeach()
install(FILES src/run/api/berth.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/berth COMPONENT library)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
set(package_files ${PROJECT_BINARY_DIR}/package)
configure_package_config_file(packaging/cmake/berth-config.cmake.in ${package_files}/berth-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${package_files}/berth-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT berth NAMESPACE berth:: FILE berth-targets.cmake DESTINATION ${package_dir} COMPONENT library)
install(FILES ${package_files}/berth-config.cmake ${package_files}/berth-config-version.cmake
        DESTINATION ${package_dir} COMPONENT library)
