set(DEPS runtime_pod)
