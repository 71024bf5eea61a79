set(DEPS runtime_network)
