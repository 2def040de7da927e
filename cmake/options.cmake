# SPDX-License-Identifier: Apache-2.0
# Compiler and linker options that every target shares.
add_compile_options(-Werror -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                    -Wno-missing-designated-field-initializers
                    $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety> -fno-omit-frame-pointer
                    -fPIC)  # programs too, not -fPIE: one precompiled header serves both
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-fuse-ld=lld-19 -Wl,--gc-sections)
add_compile_definitions(_GNU_SOURCE BOOST_ASIO_NO_DEPRECATED BOOST_ALL_NO_LIB
                        BOOST_ASIO_DISABLE_BOOST_ARRAY
                        # Asio is compiled once, in src/base/asio.cc; its iostreams and Boost's dates are not used.
                        BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_IOSTREAM BOOST_ASIO_DISABLE_BOOST_DATE_TIME)

if(GLOVEBOX_SANITIZE)
  add_compile_options(-fsanitize=${GLOVEBOX_SANITIZE} -fno-sanitize-recover=undefined)
  add_link_options(-fsanitize=${GLOVEBOX_SANITIZE})
endif()

if(GLOVEBOX_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  add_compile_options(-fstack-protector-strong)
  add_link_options(-Wl,--icf=safe)
endif()
