set(DEPS shim_worker shim_leaks)
