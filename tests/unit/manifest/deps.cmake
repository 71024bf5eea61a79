set(DEPS runtime_manifest)
