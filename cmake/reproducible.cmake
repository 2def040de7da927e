# SPDX-License-Identifier: Apache-2.0
# The same sources give the same bytes, in whatever folder they lie: no path of this machine, no time, and an id of the
# build that is a sum of its content.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=../../=./ -Werror=date-time)
add_link_options(LINKER:--build-id=sha1)
