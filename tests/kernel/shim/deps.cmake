set(DEPS shim_worker shim_pods)
