"""Writes MPICH's algorithm selection as JSON: the library's own tree with a replaced subtree.

A file replaces MPICH's whole selection, so the rest is copied from the library, which has its
trees as text. Conditions exclude calls that an algorithm doesn't support. The keys were taken from
csel.c and csel_container.c of 5.0.1.
"""

from __future__ import annotations

import json
import mmap
import re
from pathlib import Path
from typing import Any

from commtune.documents.quantities import whole_number
from commtune.errors import ExportRefused, MissingComponent
from commtune.export.rules.rule_file import RuleFile, RuleFormat, commented_json
from commtune.export.rules.table import RuleTable
from commtune.model import Configuration, Operation

_Tree = dict[str, Any]
_PREFIX = "MPIR_CVAR_"
_REDUCTIONS = ("allreduce", "reduce", "reduce-scatter")
_SHARED = ("allreduce", "broadcast", "reduce")
#: Compositions that split an operation between shared memory and network: names by number from 1
#: on, and the one for all communicators. Several leaders per node are for several nodes.
_COMPOSITIONS = {
    "allgather": ("", "beta"),
    "allreduce": ("alpha", "beta", "gamma"),
    "alltoall": ("", "beta"),
    "broadcast": ("alpha", "beta", "gamma"),
    "reduce": ("alpha", "beta", "gamma"),
}
_FLAT = {"broadcast": "gamma", "reduce": "gamma"}
#: Parameters of algorithms, each with its variable and MPICH's default. All must be in the file,
#: as a missing one is read from uninitialized memory.
_ONCE = ("single_phase_recv", "RECEXCH_SINGLE_PHASE_RECV", "0")
_PARAMETERS: dict[tuple[str, str], tuple[tuple[str, str, str], ...]] = {
    ("allreduce", "recursive_multiplying"): (("k", "RECURSIVE_MULTIPLYING_KVAL", "2"),),
    ("allreduce", "recexch"): (("k", "RECEXCH_KVAL", "2"), _ONCE),
    ("allreduce", "k_reduce_scatter_allgather"): (("k", "RECEXCH_KVAL", "2"), _ONCE),
    ("allgather", "k_brucks"): (("k", "BRUCKS_KVAL", "2"),),
    ("allgather", "recexch_doubling"): (("k", "RECEXCH_KVAL", "2"), _ONCE),
    ("allgather", "recexch_halving"): (("k", "RECEXCH_KVAL", "2"), _ONCE),
    ("alltoall", "k_brucks"): (("k", "BRUCKS_KVAL", "2"),),
}
#: Algorithms with parameters that variables can set but a file can't.
_REFUSED = ("tree", "pipelined_tree", "ccl", "auto", "smp", "noncommutative")
_TRUTH = {"true": "1", "yes": "1", "on": "1", "false": "0", "no": "0", "off": "0"}
_PAGE = 4096


def _own_prefix(operation: str) -> str:
    return f"{_PREFIX}{Operation(operation).mpi_name.upper()}_"


def _posix_name(operation: str) -> str:
    return f"{_own_prefix(operation)}POSIX_INTRA_ALGORITHM"


def _expressible(operation: str) -> frozenset[str]:
    if not Operation(operation).mpi_name:
        return frozenset()
    own = _own_prefix(operation)
    names = {
        own + variable
        for (word, _), parameters in _PARAMETERS.items()
        if word == operation
        for _, variable, _ in parameters
    }
    shared = {_posix_name(operation)} if operation in _SHARED else set()
    split = {f"{own}COMPOSITION"} if operation in _COMPOSITIONS else set()
    return frozenset({f"{own}INTRA_ALGORITHM", *names, *shared, *split})


def _write(table: RuleTable, remarks: list[str], folder: Path | None) -> list[RuleFile]:
    trees = _find_trees(folder)
    files: list[RuleFile] = []
    for kind, (infix, leaf) in _FILES.items():
        tree = {**trees[kind]}
        for operation in table.operations:
            _replace_operation(tree, table, operation, leaf)
        if not files or tree != trees[kind]:
            name = f"{_PREFIX}{infix}COLL_SELECTION_TUNING_JSON_FILE"
            files.append(_file(name, tree, remarks))
    return files


def _replace_operation(tree: _Tree, table: RuleTable, operation: str, leaf: Any) -> None:
    key = f"collective={Operation(operation).mpi_name}"
    if key not in tree:
        return
    own = tree[key]["comm_type=intra"]
    ranks = table.ranks(operation)
    _refuse_odd_doubling(table, operation, ranks)
    usual = _for_ranks(own, ranks)
    spans = table.spans(operation)
    said = [leaf(operation, span.settings, usual) for span in spans]
    if all(one == usual for one in said):
        return
    kind = "total_msg_size" if Operation(operation).is_total else "avg_msg_size"
    by_size = {
        f"{kind}=any" if span.last is None else f"{kind}<={span.last}": one
        for span, one in zip(spans, said, strict=True)
    }
    chosen = {f"comm_size<={ranks - 1}": own, f"comm_size<={ranks}": by_size, "comm_size=any": own}
    tree[key] = {**tree[key], "comm_type=intra": chosen}


def _refuse_odd_doubling(table: RuleTable, operation: str, ranks: int) -> None:
    words = {r.settings.get(f"{_own_prefix(operation)}INTRA_ALGORITHM") for r in table.rules}
    if operation == "allgather" and "recursive_doubling" in words and ranks & (ranks - 1):
        raise ExportRefused(
            f"MPICH has no recursive doubling for allgather with {ranks} ranks: with the variable "
            "it took another algorithm, with a file it would fail"
        )


def _for_ranks(tree: _Tree, ranks: int) -> _Tree:
    """Returns a tree for a number of ranks on one node, with its conditions on that resolved."""
    for key, below in tree.items():
        if found := re.fullmatch(r"comm_size(<=|<|=)(\w+)", key):
            sign, word = found.groups()
            fits = {
                "any": True,
                "pow2": ranks & (ranks - 1) == 0,
                "node_comm_size": True,
            }.get(word)
            if fits is None:
                fits = ranks <= int(word) if sign == "<=" else ranks < int(word)
            if fits:
                return _for_ranks(below, ranks)
    if any(key.startswith("comm_size") for key in tree):
        raise ExportRefused(f"MPICH's own tree says nothing of {ranks} ranks")
    return {key: _for_ranks(below, ranks) for key, below in tree.items()}


def _main_leaf(operation: str, settings: Configuration, usual_tree: _Tree) -> _Tree:
    own = _own_prefix(operation)
    word = settings.get(f"{own}INTRA_ALGORITHM")
    parameters = _PARAMETERS.get((operation, word or ""), ())
    other = {f"{own}COMPOSITION", _posix_name(operation)}
    rest = set(settings) - {f"{own}INTRA_ALGORITHM", *other}
    unused = sorted(rest - {own + variable for _, variable, _ in parameters})
    if word in _REFUSED or unused:
        names = ", ".join(unused) or f"{own}INTRA_ALGORITHM={word}"
        raise ExportRefused(
            f"mpich-json can't say {names}", hint="export that profile by itself: --format sh"
        )
    if word is None:
        return usual_tree
    kind = "allcomm" if word == "nb" else "intra"
    name = f"{Operation(operation).mpi_name.capitalize()}_{kind}_{word}"
    values = [(key, settings.get(own + variable, usual)) for key, variable, usual in parameters]
    leaf: _Tree = {
        f"algorithm=MPIR_{name}": {f"{key}={_TRUTH.get(v.lower(), v)}": {} for key, v in values}
    }
    if operation in _REDUCTIONS:
        return _reducing(word, leaf, usual_tree)
    if operation == "alltoall":
        return {"is_sendbuf_inplace=yes": usual_tree, "is_sendbuf_inplace=no": leaf}
    return leaf


def _reducing(word: str, leaf: _Tree, usual: _Tree) -> _Tree:
    if word in ("reduce_scatter_allgather", "reduce_scatter_gather"):
        # These divide the data among the ranks.
        leaf = {"count<pow2": usual, "count=any": leaf}
        return {"is_op_built_in=no": usual, "is_op_built_in=yes": leaf}
    return {"is_commutative=no": usual, "is_commutative=yes": leaf}


def _posix_leaf(operation: str, settings: Configuration, usual: _Tree) -> _Tree:
    word = settings.get(_posix_name(operation), "auto")
    if word == "auto" or word == "release_gather":
        return usual
    if word != "mpir":
        raise ExportRefused(f"mpich-json can't say {_posix_name(operation)}={word}")
    # The condition never holds, so that the main file decides, not the one for shared memory.
    name = f"algorithm=MPIDI_POSIX_mpi_{Operation(operation).mpi_name}_release_gather"
    return {"is_multi_threaded=yes": {"is_multi_threaded=no": {name: {}}}}


def _device_leaf(operation: str, settings: Configuration, usual: _Tree) -> _Tree:
    own = f"{_own_prefix(operation)}COMPOSITION"
    word = settings.get(own, "0")
    if word == "0":
        return usual
    known = dict(enumerate(_COMPOSITIONS[operation], 1))
    name, flat_name = known.get(whole_number(word) or 0, ""), _FLAT.get(operation, "beta")
    if not name:
        raise ExportRefused(f"mpich-json can't say {own}={word}")
    base = f"composition=MPIDI_{Operation(operation).mpi_name.capitalize()}_intra_composition"
    leaf: _Tree = {f"{base}_{name}": {}}
    flat: _Tree = {f"{base}_{flat_name}": {}}
    if name == flat_name:
        return leaf
    if name == "gamma":
        return {"comm_size=node_comm_size": leaf, "comm_size=any": flat}
    leaf = {"comm_hierarchy=parent": leaf, "comm_hierarchy=any": flat}
    if operation in _REDUCTIONS:
        return {"is_commutative=yes": leaf, "is_commutative=no": flat}
    return leaf


#: By kind of tree: what its variable's name has in the middle, and what is said of a size.
_FILES = {
    "mpir": ("", _main_leaf),
    "posix": ("CH4_POSIX_", _posix_leaf),
    "ch4": ("CH4_", _device_leaf),
}


def _file(variable: str, tree: _Tree, remarks: list[str]) -> RuleFile:
    text = commented_json(remarks, tree)
    # MPICH maps the file and reads up to a zero byte, which is missing if the last page is full.
    return RuleFile(variable, text if len(text.encode()) % _PAGE else text + "\n")


def _find_trees(folder: Path | None) -> dict[str, _Tree]:
    """Extracts MPICH's own trees from the library in a folder."""
    files = sorted(folder.glob("lib*/libmpi.so.*")) if folder else []
    for file in files:
        with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=1) as content:
            found = [
                content[match.start() : content.find(b"\0", match.start())]
                for match in re.finditer(rb'\{"collective=bcast"', content)
            ]
        trees = {_kind(text): json.loads(text) for text in found}
        if trees.keys() >= _FILES.keys():
            return trees
    raise MissingComponent(
        f"MPICH's own rules were not found in {folder or 'the library'}: mpich-json copies them",
        hint="export where the MPICH is that the campaign was measured with: --mpi PREFIX",
    )


def _kind(text: bytes) -> str:
    if b"composition=" in text:
        return "ch4"
    return "posix" if b"MPIDI_POSIX" in text else "mpir"


MPICH = RuleFormat(
    "mpich-json",
    "mpich",
    ">=5.0,<5.1",
    _expressible,
    _write,
    between_nodes="MPICH makes one operation of several, on communicators of other sizes",
    release_bound="the file copies",
)
