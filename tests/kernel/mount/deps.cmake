set(DEPS mount mount_table)
