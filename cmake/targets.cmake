# glovebox_test(<name> SOURCES a_test.cc … LIBS lib …): one GoogleTest program, registered case by case.
function(glovebox_test name)
  if(GLOVEBOX_GUEST)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LIBS} GTest::gtest GTest::gmock GTest::gtest_main)
  # The code under test keeps the preset's optimisation; optimising the tests themselves only costs build time.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O0>)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
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
