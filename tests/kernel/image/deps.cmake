set(DEPS runtime_import)
