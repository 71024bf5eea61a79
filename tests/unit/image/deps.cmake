set(DEPS runtime_image)
