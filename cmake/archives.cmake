# SPDX-License-Identifier: Apache-2.0
# What every release of Debian and Ubuntu has under another name is linked from its archive, so that one program runs on
# all of them. The host's program loads libc, libstdc++, OpenSSL, libcurl and SQLite, whose names are the same everywhere
# and whose repairs must not wait for a release of ours.
set(Boost_USE_STATIC_LIBS ON)
set(Protobuf_USE_STATIC_LIBS ON)
set(ZLIB_USE_STATIC_LIBS ON)

# glovebox_link_archive(<pkg-config target> <archive>): the archive in place of the shared library of that name.
function(glovebox_link_archive target archive)
  find_library(${archive}_FILE ${archive} REQUIRED)
  set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES ${${archive}_FILE})
endfunction()
