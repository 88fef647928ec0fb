#!/bin/sh
# start.sh PROGRAM ...: run it, without what a server that was killed left in the pod's /dev/shm. That volume outlives the
# container, so each restart would leave less of it. One server runs in a pod.
rm -f /dev/shm/triton_*_backend_shm_region_*
exec "$@"
