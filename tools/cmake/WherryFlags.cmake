# Flags that every target of the project is compiled with.
add_library(wherry_flags INTERFACE)
target_compile_options(wherry_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wimplicit-fallthrough -Wformat=2 -Werror
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Wold-style-cast>
  # g++ 12 at -O1 takes the storage of a std::variant for a heap block when a moved-from alternative is destroyed.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-free-nonheap-object>
  -fstack-protector-strong -fno-strict-overflow -ffunction-sections -fdata-sections)
target_include_directories(wherry_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_link_options(wherry_flags INTERFACE -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--build-id=sha1)
if(WHERRY_SANITIZE)
  target_compile_options(wherry_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(wherry_flags INTERFACE -fsanitize=address,undefined)
elseif(CMAKE_BUILD_TYPE STREQUAL "Release")
  # What g++ 12 says from inside the standard library when it has inlined a lot; the dev and clang builds are stricter.
  target_compile_options(wherry_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error=array-bounds
    -Wno-error=restrict -Wno-error=stringop-overflow -Wno-error=maybe-uninitialized>)
  target_compile_options(wherry_flags INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fcf-protection)
endif()
if(WHERRY_FAULT_POINTS)
  target_compile_definitions(wherry_flags INTERFACE WHERRY_FAULT_POINTS=1)
endif()
target_compile_definitions(wherry_flags INTERFACE WHERRY_VERSION="${PROJECT_VERSION}")
