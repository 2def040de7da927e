# SPDX-License-Identifier: Apache-2.0
# glovebox_test(<name> SOURCES a_test.cc … LIBS lib … [LABEL root|vm]): one GoogleTest program, registered case by case. Its
# label says what it needs: nothing ("unit"), a root who may make namespaces and processes of others, or machines.
function(glovebox_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LIBS" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES GB_PRECOMPILED tests)
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} gb_asio GTest::gtest GTest::gmock GTest::gtest_main)
  # The code under test keeps the preset's optimisation; optimising the tests themselves only costs build time.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  # No TIMEOUT of a test's own: who runs them knows how slow the machine is (scripts/test, the test presets).
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 600 PROPERTIES LABELS ${ARG_LABEL})
endfunction()

# glovebox_fuzz(<name> SOURCES x_fuzz.cc LIBS lib …): one libFuzzer program, built with the fuzz preset only.
function(glovebox_fuzz name)
  if(NOT GLOVEBOX_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()

# glovebox_guest_program(<name> SOURCES main.cc … LIBS lib …): a program for the inside of a sandbox, of the same objects as
# the host's. Static, for any root file system: nothing may be looked up at run time, so no NSS and no dlopen. Sanitizers
# cannot be linked so, and need no such program.
function(glovebox_guest_program name)
  if(GLOVEBOX_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES GB_PRECOMPILED "${ARG_PRECOMPILED}")
  target_link_libraries(${name} PRIVATE ${ARG_LIBS})
  target_link_options(${name} PRIVATE -static -s)
endfunction()
