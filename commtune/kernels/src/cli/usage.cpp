#include "cli/usage.h"

namespace commtune {

namespace {

constexpr const char* kUsage =
    R"(usage: mpiexec -n N commtune-bench --op OPERATION --sizes BYTES[,BYTES...] [option...]

Measures one communication operation and writes JSON Lines.

  --op OPERATION      between rank 0 and the last: ping-pong, bidirectional, stream;
                      of all: allreduce, reduce, broadcast, allgather, reduce-scatter,
                      alltoall, ring, incast, one-to-many, self;
                      of groups: rail, asymmetric, symmetric, striping;
                      others: pairs (one rank to one other, all pairs in turn), matrix
  --then OP[,OP...]   measure these at all sizes afterwards, in the same processes and with the
                      same communicators; their records name them. Not those of groups, stream,
                      pairs, matrix
  --backend NAME      mpi-host (default); with GPUs: xccl, mpi-device, mpi-staged, ipc-put,
                      ipc-get. 'commtune-bench --backends' lists those of this executable
  --sizes B[,B...]    message sizes in bytes, one element to 1073741824, each once
  --dtype TYPE        float32 (default), float64, int32 or uint8
  --reduction WHAT    sum (default) or max
  --records FILE      where records go; without it to standard output
  --run-id ID         copied into the header
  --env-names A[,B]   variables whose values each rank reports in the header
  --expect-ranks N    do nothing unless so many ranks came up together (any number)
  --mode MODE         measure (default), or trace: time nothing, do the operation at each size,
                      and write a digest of sums that depends on the order of summation
  --controls A[,B]    with --mode trace: control variables (MPI_T) whose values each rank reports
  --warmup N          operations dropped before the first sample, beside the first call (5)
  --min-samples N     fewest samples a size (10)
  --max-samples N     most samples a size (200)
  --relative-ci X     stop when the 95 % confidence interval of the median is narrower than
                      this share of it (0.01)
  --time-cap SECONDS  stop after this time once there are enough samples (0.05)
  --timing HOW        blocking (default): each operation is waited for; batched: so many are
                      enqueued on the device, then waited for together
  --operations N      in one sample: with --timing batched 20; with blocking as many as it takes
                      to be timed well, if none are named
  --graph yes|no      with --timing batched: the batch is recorded once as a graph of the GPU's
                      runtime, and a sample is one launch of it. xccl only (no)
  --timer CLOCK       wall (default), or device: events on the device
  --wait HOW          stream (default): in a call of the GPU's runtime; poll: ask the stream and
                      the library in turn, as nccl-tests does
  --allocator WITH    runtime (default): buffers are allocated with the GPU's runtime; library: with
                      NCCL or RCCL, which can register them then, as nccl-tests does. xccl only
  --window N          of stream: messages under way (64)
  --group-size N      of rail, asymmetric, symmetric, striping: ranks of a group, as a rule of a
                      node (1)
  --active N          of rail, asymmetric, symmetric: ranks of a group that send (1)
  --direction WAY     of these: outbound (default: from the first group), bidirectional,
                      omnidirectional
  --matrix FILE       of matrix: lines "FROM TO BYTES"; they are scaled so that the largest
                      message has the size asked for
  --inside NAME       of matrix and striping: backend of messages inside nodes
  --between NAME      likewise of messages between nodes
  --assemble NAME     of striping: backend of its last part (that of --inside)
  --bind WHERE        none (default), or gpu: run on the CPUs near this rank's GPU
  --rotate yes|no     do each operation at another of up to 64 places of the buffers, as
                      nccl-tests does, so that caches hold less of its data (no)
  --share-gpus yes|no let several ranks use one GPU, for tests (no)
  --seed N            of the data pattern (1)
  --check full|none   compare every received element, outside the timed part (full)
  --end HOW           clean (default), or quick: when all is written, MPI_Finalize and exit, without
                      giving back GPU memory and communicators first
  --fault KIND@BYTES  test only: hang, crash, wrong or babble at this size
  --aggressors RANKS  these ranks measure nothing: they send beside the others for as long as those
                      measure. last:N, every:N (every:2 is each second one) or a list (1,3,6-7).
                      With --pattern, --message, --burst, --pause and --longest, as below
  --aggressor-backend NAME  what they send with (--backend)

mpiexec -n N commtune-bench --mode aggress --pattern PATTERN --message BYTES [option...]

Measures nothing: moves messages until SIGTERM or SIGINT, as traffic beside another run.

  --pattern PATTERN   incast (all other ranks send to rank 0) or alltoall
  --message BYTES     from one rank to one other, 1 to 1073741824
  --burst SECONDS     with --pause: send so long, be silent so long, in turn (never silent)
  --pause SECONDS
  --stop-file FILE    ends when this file is there
  --longest SECONDS   ends after this time in any case (3600)
  --records, --run-id, --env-names and --expect-ranks as above

  --help, --version, --backends
)";

}  // namespace

std::string_view usage() { return kUsage; }

}  // namespace commtune
