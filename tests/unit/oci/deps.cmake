set(DEPS oci)
list(APPEND sources ${CMAKE_SOURCE_DIR}/tests/fuzz/config_fuzz.cpp ${CMAKE_SOURCE_DIR}/tests/fuzz/image_fuzz.cpp)
set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/unit/oci/documents_test.cpp APPEND PROPERTY
  COMPILE_DEFINITIONS "WHERRY_SHARED_DIR=\"${CMAKE_SOURCE_DIR}/../shared\"")
set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/unit/oci/corpus_test.cpp APPEND PROPERTY
  COMPILE_DEFINITIONS "WHERRY_CORPUS_DIR=\"${CMAKE_SOURCE_DIR}/tests/fuzz/corpus\"")
