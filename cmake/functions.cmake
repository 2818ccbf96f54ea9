# The functions that sources.cmake calls; install.cmake has those for what is installed.
#
# A library of Bazel's is an object library here, which is compiled only if something needs it. The
# folders of the build:
#
#     sources/weir/        links to the folders of the sources, so that "weir/core/..." is found
#     generated/weir/      what is made during the build, at the path that it is included with

set(WEIR_SOURCE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
set(WEIR_INCLUDE_DIRS "${CMAKE_CURRENT_BINARY_DIR}/generated" "${CMAKE_CURRENT_BINARY_DIR}/sources")
set(WEIR_GENERATED_DIR "${CMAKE_CURRENT_BINARY_DIR}/generated/weir")

# The flags of all sources, of which .bazelrc has the reasons.
file(STRINGS "${WEIR_SOURCE_DIR}/.bazelrc" lines REGEX "^build --(cxx|c)opt=")
string(REGEX MATCHALL "--(cxx|c)opt=[^ ;]+" WEIR_OPTIONS "${lines}")
list(TRANSFORM WEIR_OPTIONS REPLACE "^--(cxx|c)opt=" "")
list(FILTER WEIR_OPTIONS EXCLUDE REGEX "^-std=") # CMake's own comes last
list(APPEND WEIR_OPTIONS -ffunction-sections -fdata-sections)
# Sources that Highway compiles for several processors include themselves, from the root.
list(APPEND WEIR_OPTIONS "SHELL:-iquote \"${WEIR_SOURCE_DIR}\"")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS .bazelrc VERSION)

# Writes a file, unless it has this text already: what depends on it would be made anew.
function(weir_write path text)
  if(EXISTS "${path}")
    file(READ "${path}" before)
    if(before STREQUAL text)
      return()
    endif()
  endif()
  file(WRITE "${path}" "${text}")
endfunction()

set(links "${CMAKE_CURRENT_BINARY_DIR}/sources/weir")
file(MAKE_DIRECTORY "${links}" "${WEIR_GENERATED_DIR}")
foreach(folder proto core ops kernels session onnx serving rpc capi tools)
  file(CREATE_LINK "${WEIR_SOURCE_DIR}/${folder}" "${links}/${folder}" SYMBOLIC)
endforeach()

set(WEIR_WORDS OUTPUT PRECOMPILED)
set(WEIR_LISTS DEFINES FLAGS GENERATED INCLUDES LIBRARIES NEEDS OPTIONS PROTOS SOURCES)

# Sets the flags of a target: those of all sources, and its own, which are the caller's ARG_... .
function(weir_set_flags name)
  set(level -O2)
  set(options)
  foreach(option ${ARG_OPTIONS})
    if(option MATCHES "^-O")
      set(level ${option})
    elseif(option STREQUAL "-freorder-functions")
      list(APPEND options $<$<CXX_COMPILER_ID:GNU>:${option}>)
    else()
      list(APPEND options ${option})
    endif()
  endforeach()
  # Without warnings, which are for Weir's own build.
  target_compile_options(${name} PRIVATE
    ${WEIR_OPTIONS} $<$<NOT:$<CONFIG:Debug>>:${level}> ${options} -w)
  target_compile_definitions(${name} PRIVATE ${ARG_DEFINES})
  list(TRANSFORM ARG_INCLUDES PREPEND "${WEIR_SOURCE_DIR}/")
  target_include_directories(${name} PRIVATE ${WEIR_INCLUDE_DIRS} ${ARG_INCLUDES})
  set_target_properties(${name} PROPERTIES
    CXX_EXTENSIONS OFF
    CXX_STANDARD 20
    CXX_STANDARD_REQUIRED ON
    EXCLUDE_FROM_ALL ON
    POSITION_INDEPENDENT_CODE ON)
  if(ARG_NEEDS)
    list(TRANSFORM ARG_NEEDS APPEND _headers)
    add_dependencies(${name} ${ARG_NEEDS})
  endif()
  if(ARG_PRECOMPILED AND WEIR_PRECOMPILED_HEADERS)
    weir_precompile(${ARG_PRECOMPILED})
    target_precompile_headers(${name} REUSE_FROM weir_precompiled_${ARG_PRECOMPILED})
  endif()
endfunction()

# Defines a precompiled header of tools/precompiled, for targets with the caller's ARG_OPTIONS.
function(weir_precompile header)
  set(name weir_precompiled_${header})
  if(TARGET ${name})
    return()
  endif()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/precompiled.cc")
  weir_write("${source}" "")
  add_library(${name} OBJECT "${source}")
  set(ARG_PRECOMPILED)
  set(ARG_NEEDS)
  weir_set_flags(${name})
  target_precompile_headers(${name} PRIVATE
    "${WEIR_SOURCE_DIR}/tools/precompiled/${header}_headers.h")
endfunction()

# A library of sources, of which some are generated. NEEDS names what generates headers.
function(weir_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "${WEIR_WORDS}" "${WEIR_LISTS}")
  list(TRANSFORM ARG_SOURCES PREPEND "${WEIR_SOURCE_DIR}/")
  list(TRANSFORM ARG_GENERATED PREPEND "${WEIR_GENERATED_DIR}/")
  add_library(${name} OBJECT ${ARG_SOURCES} ${ARG_GENERATED})
  weir_set_flags(${name})
endfunction()

# A library of messages, and the target NAME_headers, which generates its headers.
function(weir_protos name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "${WEIR_WORDS}" "${WEIR_LISTS}")
  foreach(proto ${ARG_PROTOS})
    string(REGEX REPLACE "\\.proto$" "" path "${WEIR_GENERATED_DIR}/${proto}")
    list(APPEND sources "${path}.pb.cc")
    list(APPEND headers "${path}.pb.h")
    list(APPEND inputs "${WEIR_SOURCE_DIR}/${proto}")
    list(APPEND names "weir/${proto}")
  endforeach()
  add_custom_command(
    OUTPUT ${sources} ${headers}
    COMMAND "${WEIR_PROTOC}" "-I${CMAKE_CURRENT_BINARY_DIR}/sources"
      "--cpp_out=${CMAKE_CURRENT_BINARY_DIR}/generated" ${names}
    DEPENDS ${inputs}
    COMMENT "Generating the messages of ${name}"
    VERBATIM)
  add_custom_target(${name}_headers DEPENDS ${headers})
  add_library(${name} OBJECT ${sources})
  # As in .bazelrc: -O2 takes half as long again, and what parses is in protobuf's library.
  set(ARG_OPTIONS -O1 -freorder-functions)
  set(ARG_PRECOMPILED protobuf)
  list(APPEND ARG_NEEDS ${name})
  weir_set_flags(${name})
endfunction()

# Files made by a command of the shell, in the folder of the sources, with $BIN for the folder of
# generated files and ${inputs[@]} for the inputs. PROGRAMS must be built before. A header has the
# target NAME_headers.
function(weir_generate name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "COMMAND" "OUTPUTS;INPUTS;PROGRAMS")
  list(TRANSFORM ARG_OUTPUTS PREPEND "${WEIR_GENERATED_DIR}/")
  foreach(output ${ARG_OUTPUTS})
    get_filename_component(folder "${output}" DIRECTORY)
    file(MAKE_DIRECTORY "${folder}")
  endforeach()
  string(REPLACE ";" "\n" inputs "${ARG_INPUTS}")
  set(script "${CMAKE_CURRENT_BINARY_DIR}/generated/${name}.sh")
  weir_write("${script}" "set -euo pipefail\nBIN=$1\ninputs=(\n${inputs}\n)\n${ARG_COMMAND}\n")
  list(TRANSFORM ARG_INPUTS PREPEND "${WEIR_SOURCE_DIR}/")
  add_custom_command(
    OUTPUT ${ARG_OUTPUTS}
    COMMAND bash "${script}" "${WEIR_GENERATED_DIR}"
    DEPENDS "${script}" ${ARG_INPUTS} ${ARG_PROGRAMS}
    WORKING_DIRECTORY "${WEIR_SOURCE_DIR}"
    VERBATIM)
  if(ARG_OUTPUTS MATCHES "\\.h$")
    add_custom_target(${name}_headers DEPENDS ${ARG_OUTPUTS})
  endif()
endfunction()

# A header that is included by another path than its own.
function(weir_header path)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "SOURCE" "")
  set(link "${CMAKE_CURRENT_BINARY_DIR}/generated/${path}")
  file(CREATE_LINK "${WEIR_SOURCE_DIR}/${ARG_SOURCE}" "${link}" SYMBOLIC)
endfunction()

# A program, which commands of weir_generate() find at OUTPUT below $BIN.
function(weir_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "${WEIR_WORDS}" "${WEIR_LISTS}")
  list(TRANSFORM ARG_SOURCES PREPEND "${WEIR_SOURCE_DIR}/")
  list(TRANSFORM ARG_LIBRARIES REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
  get_filename_component(folder "${WEIR_GENERATED_DIR}/${ARG_OUTPUT}" DIRECTORY)
  get_filename_component(file "${ARG_OUTPUT}" NAME)
  add_executable(${name} ${ARG_SOURCES} ${ARG_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    OUTPUT_NAME ${file}
    RUNTIME_OUTPUT_DIRECTORY "$<1:${folder}>")
  weir_set_flags(${name})
  target_link_libraries(${name} PRIVATE -Wl,--gc-sections ${ARG_FLAGS})
endfunction()
