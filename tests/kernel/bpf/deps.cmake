set(DEPS bpf cgroups)
