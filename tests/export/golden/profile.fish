# commtune profile allreduce-256k-1m: settings for allreduce, 256 KiB to 1 MiB
# Campaign first, 2026-01-02T03:04:05+00:00, commtune 0.1.0
# Measured on laptop (fingerprint faa162548b462f89):
#   mpi-host, 2 ranks, 1 node
#   mpich 5.0.2 (wheel)
#   Linux 6.1.0, debian 12
#
# For allreduce in that range of sizes only: that is what was measured.
# The settings change every operation of a program that starts under them.
# Guard operations measured too, each at most 5 % slower: alltoall, broadcast.
#
#    size  state  default  candidate  speedup, simultaneous 95 % CI     verdict
# 256 KiB  fast   35.1 us    26.2 us  1.31x to 1.36x (1.34x, 22 pairs)  allreduce: faster
#   1 MiB  fast    142 us     101 us  1.40x to 1.42x (1.41x, 22 pairs)  allreduce: faster
#   1 MiB  slow    431 us     144 us  2.80x to 3.10x (2.99x, 22 pairs)  allreduce: faster
#   1 MiB  fast    100 us     100 us  0.98x to 1.02x (1.00x, 22 pairs)  broadcast: speedup ruled out
#   1 MiB  fast    100 us     101 us  0.96x to 1.01x (0.99x, 22 pairs)  alltoall: speedup ruled out
# Rests on 22 pairs or more at each size; 1 day, 1 session, 1 node; no verification
#
# The profile's variables: MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE, MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE
# Set in every run, the default's too: MPIR_CVAR_CH4_SHM_POSIX_TOPO_ENABLE
# Measured with these unset; nothing here unsets them: MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM
#
# Verify: commtune verify first/allreduce-256k-1m
#   or time your program with and without them, in turn, several times.
# Load: source FILE
# Undo: set -e MPIR_CVAR_CH4_SHM_POSIX_TOPO_ENABLE MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE
set -gx MPIR_CVAR_CH4_SHM_POSIX_TOPO_ENABLE '0'
set -gx MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE '2097152'
set -gx MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE '2097152'
