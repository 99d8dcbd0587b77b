# The headers as users see them: copies in the build folder's include/onestep/ whose includes start there ("nn/linear.h" becomes
# "onestep/nn/linear.h"), so that no nn/ or train/ folder of a user's own can come between; and onestep.h, which includes them
# all. Projects that add this one as a folder see the same files as those that install it.

set(ONESTEP_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)

# What includes an unchanged header is not built again.
function(onestep_write_header name text)
  set(path ${ONESTEP_INCLUDE_DIR}/onestep/${name})
  set(old_text)
  if(EXISTS ${path})
    file(READ ${path} old_text)
  endif()
  if(NOT text STREQUAL old_text)
    file(WRITE ${path} "${text}")
  endif()
endfunction()

set(umbrella "#pragma once\n// All of the library: link with onestep::onestep.\n")
set(public_headers)
foreach(layer IN ITEMS autograd nn attention train)
  file(GLOB headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${layer}/*.h)
  list(FILTER headers EXCLUDE REGEX "_case\\.h$|json")  # test cases; what needs the JSON library
  foreach(header IN LISTS headers)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${header})
    file(READ ${PROJECT_SOURCE_DIR}/${header} text)
    string(REGEX REPLACE "#include \"([a-z_]+)/" "#include \"onestep/\\1/" text "${text}")
    onestep_write_header(${header} "${text}")
    string(APPEND umbrella "#include \"onestep/${header}\"\n")
  endforeach()
  list(APPEND public_headers ${headers})
endforeach()
onestep_write_header(onestep.h "${umbrella}")

file(GLOB_RECURSE stale_headers RELATIVE ${ONESTEP_INCLUDE_DIR}/onestep ${ONESTEP_INCLUDE_DIR}/onestep/*)
list(REMOVE_ITEM stale_headers onestep.h ${public_headers})
list(TRANSFORM stale_headers PREPEND ${ONESTEP_INCLUDE_DIR}/onestep/)
if(stale_headers)
  file(REMOVE ${stale_headers})
endif()
