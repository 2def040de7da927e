# Compiler and linker options that every target shares.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
                    -Wno-missing-designated-field-initializers
                    $<$<COMPILE_LANGUAGE:CXX>:-Wthread-safety> -fno-omit-frame-pointer)
add_link_options(-fuse-ld=lld-19)
add_compile_definitions(_GNU_SOURCE BOOST_ASIO_NO_DEPRECATED BOOST_ALL_NO_LIB
                        BOOST_ASIO_DISABLE_BOOST_ARRAY)

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
endif()

if(GLOVEBOX_GUEST)
  # One binary for any root file system: nothing may be looked up at run time, so no NSS and no dlopen.
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-static -Wl,--gc-sections -Wl,--icf=safe)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(Boost_USE_STATIC_LIBS ON)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(Protobuf_USE_STATIC_LIBS ON)
  set(ZLIB_USE_STATIC_LIBS ON)
endif()
