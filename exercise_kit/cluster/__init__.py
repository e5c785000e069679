"""Many machines: dask workers that judge in place of processes of this machine."""
