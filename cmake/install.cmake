# SPDX-License-Identifier: Apache-2.0
# What belongs to an installation, below the prefix.
foreach(program glovebox glovebox-init glovebox-agent glovebox-probe glovebox-interpreter)
  if(NOT TARGET ${program})
    return()  # GLOVEBOX_SKIP left it out, or a sanitizer cannot have it
  endif()
endforeach()
install(TARGETS glovebox DESTINATION bin)
install(TARGETS glovebox-init glovebox-agent glovebox-probe glovebox-interpreter glovebox_entropy
  DESTINATION lib/glovebox/guest)
# Of prometheus-cpp Debian has no archive, and its name differs between releases: it comes along.
find_package(prometheus-cpp REQUIRED CONFIG)
install(FILES $<TARGET_FILE:prometheus-cpp::core> DESTINATION lib/glovebox
  RENAME $<TARGET_SONAME_FILE_NAME:prometheus-cpp::core>)
set_target_properties(glovebox PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib/glovebox")

install(DIRECTORY images examples DESTINATION share/glovebox USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE PATTERN node_modules EXCLUDE)
install(DIRECTORY docs/ DESTINATION share/doc/glovebox FILES_MATCHING PATTERN *.md)
install(FILES README.md CHANGELOG.md SECURITY.md THIRD_PARTY.md LICENSE DESTINATION share/doc/glovebox)
install(FILES deploy/glovebox.service DESTINATION lib/systemd/system)

# What the program says about itself. Options show their defaults, which are those of an installation.
install(CODE "
  set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
  set(glovebox \${CMAKE_COMMAND} -E env --unset=GLOVEBOX_DATA_DIR --unset=GLOVEBOX_CACHE_DIR --unset=GLOVEBOX_TEMPLATES_DIR
    $<TARGET_FILE:glovebox>)
  execute_process(COMMAND \${glovebox} manual \"\${root}/share/man/man1\" COMMAND_ERROR_IS_FATAL ANY)
  foreach(place bash-completion/completions/glovebox zsh/vendor-completions/_glovebox fish/vendor_completions.d/glovebox.fish)
    string(REGEX MATCH \"^[a-z]+\" shell \${place})
    get_filename_component(folder \"\${root}/share/\${place}\" DIRECTORY)
    file(MAKE_DIRECTORY \"\${folder}\")
    execute_process(COMMAND \${glovebox} completion \${shell} OUTPUT_FILE \"\${root}/share/\${place}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
")
