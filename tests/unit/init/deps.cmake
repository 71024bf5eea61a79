set(DEPS runtime_init)
