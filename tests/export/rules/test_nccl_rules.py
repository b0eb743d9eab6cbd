"""A table of rules as NCCL's tuner plugins read it, by the plugin itself."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest
from rule_documents import KIB, RING_LL, TREE_SIMPLE, nccl_document, nccl_documents

from commtune.errors import ExportRefused
from commtune.export.document import ExportDocument
from commtune.export.rules import render_rules
from commtune.export.rules.nccl import NCCL_TUNER
from commtune.export.rules.table import RuleTable
from commtune.kernels.library_builds import build_tuner
from commtune.model import Conditions


def _text(*documents: ExportDocument, remarks: tuple[str, ...] = ()) -> str:
    table = RuleTable.of_documents(documents, "nccl", "2.28.9")
    (file,) = NCCL_TUNER.write(table, list(remarks), None)
    assert file.variable == "COMMTUNE_TUNER_FILE"
    return file.text


def test_rules_are_rows_with_their_number_before_them() -> None:
    lines = _text(*nccl_documents()).splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "allreduce,8,2048,ring,ll,0,2,16",
        "allreduce,2049,33554432,tree,simple,0,2,16",
        "allreduce,33554433,34359738368,ring,ll128,0,2,16",
        "reducescatter,8,8,ring,ll,0,2,16",
    ]
    assert lines[-5] == "# rules: 4"


def test_what_is_pinned_belongs_to_each_rule() -> None:
    document = nccl_document(8, KIB, {"NCCL_PROTO": "LL"})
    text = _text(replace(document, pinned={"NCCL_ALGO": "Ring"}))
    assert text.splitlines()[-1] == "allreduce,8,1024,ring,ll,0,2,16"


@pytest.mark.parametrize("name", ["NCCL_MAX_CTAS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS"])
def test_a_number_of_channels_is_the_communicator_s_and_no_call_s(name: str) -> None:
    small = nccl_document(8, KIB, {**RING_LL, name: "4"})
    large = nccl_document(4 * KIB, 64 * KIB, {**TREE_SIMPLE, name: "4"})
    table = RuleTable.of_documents([small, large], "nccl", "2.28.9")
    export = render_rules(NCCL_TUNER, table, None)
    assert export.files[0].text.splitlines()[-1] == "allreduce,2049,65536,tree,simple,0,2,16"
    assert export.environment[name] == "4"
    differing = RuleTable.of_documents([small, *nccl_documents()[1:]], "nccl", "2.28.9")
    with pytest.raises(ExportRefused, match=f"can't say by size .*: {name}"):
        render_rules(NCCL_TUNER, differing, None)


def test_emulated_nodes_are_nodes_to_nccl() -> None:
    document = nccl_document(8, KIB, RING_LL)
    profile = replace(document.profile, nodes=1, conditions=Conditions(emulated_nodes=4))
    text = _text(replace(document, profile=profile))
    assert text.splitlines()[-1] == "allreduce,8,1024,ring,ll,0,4,16"


def test_comments_are_shorter_than_the_lines_of_nvidia_s_example() -> None:
    text = _text(*nccl_documents(), remarks=("settings: " + "NCCL_A=1, " * 60,))
    assert max(map(len, text.splitlines())) < 255
    assert text.count("NCCL_A=1") == 60


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ({"NCCL_ALGO": "Ring"}, "have no NCCL_PROTO"),
        ({"NCCL_PROTO": "LL"}, "have no NCCL_ALGO"),
        ({"NCCL_ALGO": "Ring,Tree", "NCCL_PROTO": "LL"}, "have NCCL_ALGO=Ring,Tree"),
        ({"NCCL_ALGO": "allreduce:Tree", "NCCL_PROTO": "LL"}, "have NCCL_ALGO=allreduce:Tree"),
        ({"NCCL_ALGO": "Ring", "NCCL_PROTO": "^LL128"}, "have NCCL_PROTO=^LL128"),
    ],
)
def test_a_choice_that_is_half_nccl_s_own_is_refused(settings: dict[str, str], found: str) -> None:
    with pytest.raises(ExportRefused) as caught:
        _text(nccl_document(8, KIB, settings))
    assert found in str(caught.value)


def test_what_makes_channels_and_transports_is_no_matter_of_a_call() -> None:
    assert "NCCL_SOCKET_NTHREADS" not in NCCL_TUNER.expressible("allreduce")
    assert not NCCL_TUNER.expressible("alltoall")


class _Tuner:
    """The plugin, as NCCL 2.28 and 2.29 drive it: version 5 of the interface."""

    _LOGGER = ctypes.CFUNCTYPE(
        None, ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p,
        ctypes.c_char_p,
    )  # fmt: skip
    _START = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint64, ctypes.c_size_t,
        ctypes.c_size_t, _LOGGER, ctypes.c_void_p, ctypes.c_void_p,
    )  # fmt: skip
    _CHOOSE = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_int,
        ctypes.POINTER(ctypes.c_float), ctypes.c_int, ctypes.c_int, ctypes.c_int,
        ctypes.POINTER(ctypes.c_int),
    )  # fmt: skip

    def __init__(self, library: Path, ranks: int, nodes: int) -> None:
        self.lines: list[str] = []
        self._log = self._LOGGER(lambda *said: self.lines.append(said[-1].decode()))
        table = (ctypes.c_size_t * 4).in_dll(ctypes.CDLL(str(library)), "ncclTunerPlugin_v5")
        self._context = ctypes.c_void_p()
        self._choose = self._CHOOSE(table[2])
        start = self._START(table[1])
        started = start(ctypes.byref(self._context), 1, ranks, nodes, self._log, None, None)
        assert started == 0, self.lines

    def choose(self, collective: int, size: int) -> tuple[int, int, int] | None:
        """Algorithm, protocol and channels, in NCCL's numbers; ``None`` where NCCL chooses."""
        costs = (ctypes.c_float * 21)(*[1.0] * 21)
        channels = ctypes.c_int(0)
        choose = self._choose
        assert choose(self._context, collective, size, 1, costs, 7, 3, 0, channels) == 0
        return next(((*divmod(i, 3), channels.value) for i in range(21) if costs[i] == 0), None)


@pytest.mark.slow
def test_the_plugin_takes_the_rules_at_and_around_each_border(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "rules.csv"
    file.write_text(_text(*nccl_documents(), remarks=("one, two", "")))
    monkeypatch.setenv("COMMTUNE_TUNER_FILE", str(file))
    library = build_tuner(tmp_path / "cache")
    made_ns = library.stat().st_mtime_ns
    assert build_tuner(tmp_path / "cache") == library
    assert library.stat().st_mtime_ns == made_ns
    tuner = _Tuner(library, ranks=16, nodes=2)
    assert any("4 rules for this communicator" in line for line in tuner.lines)
    allreduce, reduce_scatter, allgather = 4, 3, 2
    tree, ring, ll, ll128, simple = 0, 1, 0, 1, 2
    borders = {
        7: None,
        8: (ring, ll, 0),
        2048: (ring, ll, 0),
        2049: (tree, simple, 0),
        2**25: (tree, simple, 0),
        2**25 + 1: (ring, ll128, 0),
        2**35: (ring, ll128, 0),
        2**35 + 1: None,
    }
    assert {size: tuner.choose(allreduce, size) for size in borders} == borders
    assert tuner.choose(reduce_scatter, 8) == (ring, ll, 0)
    assert tuner.choose(reduce_scatter, 9) is None
    assert tuner.choose(allgather, 8) is None
