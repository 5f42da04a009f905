# The Python extension once for each CPython of a wheel, all from the headers in BERTH_PYTHON_HEADERS. nanobind's own functions
# know one interpreter, which has to run here. So this compiles nanobind as its documentation says for other build systems:
# one source, nb_combined.cpp. The one for 3.12 keeps to the stable ABI, so that it serves all later versions.
set(berth_extension_sources extension.cpp lease.cpp questions.cpp values.cpp)
list(TRANSFORM berth_extension_sources PREPEND ${PROJECT_SOURCE_DIR}/python/extension/)

set(berth_only_its_init ${PROJECT_BINARY_DIR}/extension.map)
file(CONFIGURE OUTPUT ${berth_only_its_init} CONTENT "{ global: PyInit__berth; local: *; };\n")

function(berth_extension version suffix)
  set(target berth_python_${version})
  add_library(nanobind_${version} STATIC ${BERTH_NANOBIND}/src/nb_combined.cpp)
  target_include_directories(nanobind_${version} SYSTEM PUBLIC ${BERTH_NANOBIND}/include ${BERTH_PYTHON_HEADERS}/python${version}
                             PRIVATE ${BERTH_NANOBIND}/ext/robin_map/include)
  target_compile_options(nanobind_${version} PRIVATE -Os -fno-strict-aliasing -fvisibility=hidden -w)
  target_compile_definitions(nanobind_${version} PRIVATE NB_COMPACT_ASSERTIONS PUBLIC ${ARGN})

  add_library(${target} MODULE ${berth_extension_sources})
  target_link_libraries(${target} PRIVATE nanobind_${version} berth_api berth_warnings)
  berth_sees(${target} outside api)
  target_compile_options(${target} PRIVATE -Os -fno-stack-protector -fvisibility=hidden)
  set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME _berth SUFFIX ${suffix}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/berth)
  # No symbol of ours is to meet those of the interpreter's other extensions.
  target_link_options(${target} PRIVATE -Wl,--version-script=${berth_only_its_init} -Wl,--gc-sections -s)
  install(TARGETS ${target} LIBRARY DESTINATION berth COMPONENT python EXCLUDE_FROM_ALL)
endfunction()

foreach(version IN ITEMS 3.9 3.10 3.11)
  string(REPLACE "." "" digits ${version})
  berth_extension(${version} .cpython-${digits}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.so)
endforeach()
berth_extension(3.12 .abi3.so Py_LIMITED_API=0x030C0000)
