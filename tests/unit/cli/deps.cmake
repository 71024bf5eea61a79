set(DEPS cli)
list(APPEND sources ${CMAKE_SOURCE_DIR}/tools/wherry/handed_over.cpp)
