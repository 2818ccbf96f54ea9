# TensorFlow's C API, by Weir.
#
#     find_package(tensorflow REQUIRED)
#     target_link_libraries(program PRIVATE tensorflow::tensorflow)
#
# The installed tree may be moved.

if(NOT TARGET tensorflow::tensorflow)
  get_filename_component(_tensorflow_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(tensorflow::tensorflow SHARED IMPORTED)
  set_target_properties(tensorflow::tensorflow PROPERTIES
    IMPORTED_LOCATION "${_tensorflow_prefix}/lib/libtensorflow.so"
    INTERFACE_INCLUDE_DIRECTORIES "${_tensorflow_prefix}/include")
  unset(_tensorflow_prefix)
endif()
