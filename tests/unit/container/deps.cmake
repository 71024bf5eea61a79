set(DEPS runtime_container)
