# SPDX-License-Identifier: Apache-2.0
# Precompiled headers. glovebox_precompile() goes over all targets at the end of the top CMakeLists.txt; a target with the
# property GB_PRECOMPILED says which header it takes: "code" (without the property), "std", "tests" or "none".
#
# Not CMake's own target_precompile_headers: its header would be compiled by ccache, whose answer names files of the
# folder that it was first built in. Ours is compiled anew in each build folder, and a checksum of what it contains lies
# beside it, so that objects compiled with it are found again from any folder.
option(GLOVEBOX_PRECOMPILE "Parse the headers of cmake/precompiled.h once instead of in every file" ON)

function(_glovebox_precompiled kind out)
  set(pch ${CMAKE_BINARY_DIR}/precompiled/${kind}.pch)
  set(${out} ${pch} PARENT_SCOPE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}")
  get_directory_property(options COMPILE_OPTIONS)
  list(TRANSFORM options REPLACE "^\\$<\\$<COMPILE_LANGUAGE:CXX>:(.*)>$" "\\1")
  get_directory_property(definitions COMPILE_DEFINITIONS)
  list(TRANSFORM definitions PREPEND -D)
  if(CMAKE_CXX_COMPILER_TARGET)
    list(APPEND flags --target=${CMAKE_CXX_COMPILER_TARGET})
  endif()
  if(CMAKE_SYSROOT)
    list(APPEND flags --sysroot=${CMAKE_SYSROOT})
  endif()
  list(APPEND flags ${definitions} ${options} -std=c++2b -I${PROJECT_SOURCE_DIR}/src)
  if(kind STREQUAL std)
    list(APPEND flags -DGB_PRECOMPILED_STD)
  elseif(kind STREQUAL tests)
    list(APPEND flags -DGB_PRECOMPILED_TESTS -DGTEST_HAS_PTHREAD=1)
    if(CMAKE_BUILD_TYPE STREQUAL Release)
      list(APPEND flags -O0)
    endif()
  endif()
  set(header ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/precompiled)
  add_custom_command(OUTPUT ${pch} ${pch}.sum
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -x c++-header ${header} -o ${pch}
            -Xclang -fno-pch-timestamp -fpch-instantiate-templates -fpch-codegen -MD -MT ${pch} -MF ${pch}.d
    COMMAND sh ${PROJECT_SOURCE_DIR}/cmake/precompiled-sum ${pch} ${CMAKE_CXX_COMPILER} ${flags} -x c++-header ${header}
    DEPENDS ${header} DEPFILE ${pch}.d COMMENT "Precompiling headers (${kind})" VERBATIM)
  add_custom_target(precompiled_${kind} DEPENDS ${pch})
  # Inline functions of those headers are compiled here, once; what includes them takes them from this archive.
  add_custom_command(OUTPUT ${pch}.a
    COMMAND ${CMAKE_CXX_COMPILER} ${flags} -Wno-unused-command-line-argument -c ${pch} -o ${pch}.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${pch}.a
    COMMAND ${CMAKE_AR} qcD ${pch}.a ${pch}.o
    DEPENDS ${pch} COMMENT "Compiling precompiled headers (${kind})" VERBATIM)
  add_custom_target(precompiled_${kind}_code DEPENDS ${pch}.a)
endfunction()

function(_glovebox_all_targets folder out)
  get_property(all DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(below DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(sub ${below})
    _glovebox_all_targets(${sub} more)
    list(APPEND all ${more})
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()

function(glovebox_precompile)
  if(NOT GLOVEBOX_PRECOMPILE)
    return()
  endif()
  foreach(kind std code tests)
    _glovebox_precompiled(${kind} ${kind}_pch)
  endforeach()
  # What a program needs of the headers' own code: its libraries may have been compiled with the smaller ones.
  set(std_archives std)
  set(code_archives code std)
  set(tests_archives tests code std)
  _glovebox_all_targets(${PROJECT_SOURCE_DIR} targets)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    get_target_property(kind ${target} GB_PRECOMPILED)
    if(NOT kind)
      set(kind code)
    endif()
    if(kind STREQUAL none OR NOT type MATCHES "^(STATIC_LIBRARY|EXECUTABLE)$")
      continue()
    endif()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-include-pch$<SEMICOLON>${${kind}_pch}>)
    add_dependencies(${target} precompiled_${kind})
    if(type STREQUAL EXECUTABLE)
      foreach(part ${${kind}_archives})
        add_dependencies(${target} precompiled_${part}_code)
        target_link_libraries(${target} PRIVATE ${${part}_pch}.a)
      endforeach()
    endif()
  endforeach()
endfunction()
