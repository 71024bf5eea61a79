set(DEPS shim_worker)
