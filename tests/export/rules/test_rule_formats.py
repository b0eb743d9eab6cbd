"""Files of rules read back as the libraries read them, by readers that share nothing with us."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from components import require_component
from rule_documents import DYNAMIC, KIB, OMPI, document, openmpi_documents, tuned

from commtune.errors import ExportRefused, MissingComponent
from commtune.export.document import ExportDocument
from commtune.export.rules import RULE_FORMATS, render_rules
from commtune.export.rules.rule_file import RuleExport
from commtune.export.rules.table import RuleTable
from commtune.model import Verdict

MPICH = Path(__file__).parents[3] / ".mpi" / "mpich-5.0.2"


def rendered(*documents: ExportDocument, version: str = "5.0.11") -> RuleExport:
    table = RuleTable.of_documents(documents, "openmpi", version)
    return render_rules(RULE_FORMATS["openmpi-rules"], table, None)


Rules = dict[int, dict[int, list[tuple[int, int, int, int]]]]


def read_by_open_mpi(text: str) -> Rules:
    """As ompi_coll_tuned_read_rules_config_file does: numbers, and ``#`` to the end of a line."""
    numbers = iter([int(word) for word in re.sub(r"#.*", "", text).split()])
    rules: Rules = {}
    for _ in range(next(numbers)):
        of_sizes = rules.setdefault(next(numbers), {})
        for _ in range(next(numbers)):
            ranks, count = next(numbers), next(numbers)
            rows = [tuple(next(numbers) for _ in range(4)) for _ in range(count)]
            assert rows[0][0] == 0, "the first rule must be for 0 bytes"
            assert rows == sorted(rows)
            of_sizes[ranks] = [(row[0], row[1], row[2], row[3]) for row in rows]
        assert list(of_sizes) == sorted(of_sizes)
    assert next(numbers, None) is None
    return rules


def looked_up(rules: Rules, collective: int, ranks: int, size: int) -> tuple[int, int, int]:
    """The largest communicator, and message, that is not above those of a call."""
    of_sizes = rules[collective]
    rows = of_sizes[max(one for one in of_sizes if one <= ranks)]
    return [row for row in rows if row[0] <= size][-1][1:]


def test_open_mpi_looks_up_what_the_profiles_say_for_their_ranks_only() -> None:
    found = rendered(
        *openmpi_documents("ring"),
    )
    assert found.environment == DYNAMIC
    (file,) = found.files
    assert file.variable == f"{OMPI}dynamic_rules_filename"
    rules = read_by_open_mpi(file.text)
    assert set(rules) == {2, 7}
    seen = [looked_up(rules, 2, 4, size) for size in (0, 7, 8, 2048, 2049, 16384, 16385, 2**33)]
    left, ring, segmented = (0, 0, 0), (4, 0, 0), (5, 0, 65536)
    assert seen == [left, left, ring, ring, segmented, segmented, left, left]
    assert {looked_up(rules, 2, ranks, 1024) for ranks in (1, 2, 3, 5, 8, 4096)} == {left}
    # What the variables leave to Open MPI is 4 chains; a 0 would be one.
    assert looked_up(rules, 7, 4, 1024) == (2, 4, 0)


def test_the_note_of_a_profile_stands_in_its_file() -> None:
    noted = document(8, 8, tuned("allreduce", algorithm="ring"), "allreduce")
    note = "not shown to contribute: X"
    (file,) = rendered(replace(noted, profile=replace(noted.profile, note=note))).files
    assert note in file.text


def test_no_rule_is_written_without_what_it_was_measured_with() -> None:
    settings = tuned("allreduce", algorithm="ring")
    other = document(8, 8, {**settings, "UCX_TLS": "sm"}, "allreduce")
    with pytest.raises(ExportRefused, match=r"can't say by size .*: UCX_TLS"):
        rendered(other, document(64, 64, settings, "allreduce"))
    # What all rules set holds for the process, and is loaded with the file.
    assert rendered(other).environment == {**DYNAMIC, "UCX_TLS": "sm"}
    with pytest.raises(ExportRefused, match="needs an algorithm"):
        rendered(document(8, 8, tuned("allreduce", algorithm="smurf"), "allreduce"))
    with pytest.raises(ExportRefused, match="needs an algorithm"):
        rendered(document(8, 8, tuned("allreduce", algorithm_segmentsize="1k"), "allreduce"))


@pytest.mark.parametrize("version", ["4.0.7", "6.0.0", "6.1.0a1"])
def test_rules_are_bound_to_versions(version: str) -> None:
    with pytest.raises(ExportRefused, match=r"is for openmpi >=4.1,<6; .* measured openmpi"):
        rendered(
            document(8, 8, tuned("allreduce", algorithm="ring"), "allreduce"), version=version
        )


def read_by_mpich(text: str) -> dict[str, Any]:
    """JSON with comments, checked as validate_tree does."""
    tree = json.loads(re.sub(r"^//.*$", "", text, flags=re.M))
    check_tree(tree)
    assert isinstance(tree, dict)
    return tree


_MAY_END = re.compile(r"(collective|comm_type|comm_hierarchy|is_\w+)=.*")


def check_tree(tree: dict[str, Any]) -> None:
    *_, last = tree
    assert not any(key.endswith("=any") for key in list(tree)[:-1])
    if last.startswith(("algorithm=", "composition=")):
        assert len(tree) == 1
        return
    assert last.endswith("=any") or _MAY_END.fullmatch(last), last
    for below in tree.values():
        check_tree(below)


def found_by_mpich(tree: Any, **call: Any) -> str | None:
    """The leaf of a call, as MPIR_Csel_search goes."""
    for key, below in tree.items():
        if key.startswith(("algorithm=", "composition=")):
            return " ".join([key.partition("=")[2], *below])
        name, sign, word = re.fullmatch(r"(\w+?)(<=|<|=)(\w+)", key).groups()  # type: ignore[union-attr]
        value: Any = call.get(name)
        fits = {
            "=": word == "any" or value == word,
            "<=": sign == "<=" and word.isdigit() and value <= int(word),
            "<": sign == "<" and word.isdigit() and value < int(word),
        }[sign]
        if fits:
            return found_by_mpich(below, **call)
    return None


def mpich(*documents: ExportDocument) -> RuleExport:
    require_component("wheel:mpich (make .mpi/mpich)", MPICH.is_dir())
    table = RuleTable.of_documents(documents, "mpich", "5.0.2")
    return render_rules(RULE_FORMATS["mpich-json"], table, MPICH)


def cvars(collective: str, **settings: str) -> dict[str, str]:
    return {f"MPIR_CVAR_{collective}_{name}": value for name, value in settings.items()}


def test_mpich_finds_what_the_profiles_say_and_its_own_choice_elsewhere() -> None:
    export = mpich(
        document(
            8, KIB, cvars("ALLREDUCE", INTRA_ALGORITHM="recexch", RECEXCH_KVAL="4"), "allreduce"
        ),
        document(
            4 * KIB,
            16 * KIB,
            cvars("ALLREDUCE", INTRA_ALGORITHM="ring", POSIX_INTRA_ALGORITHM="mpir"),
            "allreduce",
        ),
    )
    main, posix = (read_by_mpich(file.text) for file in export.files)
    call = {"collective": "allreduce", "comm_type": "intra", "comm_size": 4}
    call |= {"is_commutative": "yes", "is_op_built_in": "yes", "is_multi_threaded": "no"}

    def chosen(tree: Any, size: int, **other: Any) -> str | None:
        own = {**call, "avg_msg_size": size, **other}
        subtree = tree[f"collective={own['collective']}"]
        return found_by_mpich({f"collective={own['collective']}": subtree}, **own)

    recexch, ring = (
        "MPIR_Allreduce_intra_recexch k=4 single_phase_recv=0",
        "MPIR_Allreduce_intra_ring",
    )
    own = "MPIR_Allreduce_intra_reduce_scatter_allgather"
    doubling = "MPIR_Allreduce_intra_recursive_doubling"
    at = [chosen(main, size) for size in (7, 8, 2048, 2049, 16384, 16385, 2**30)]
    assert at == [doubling, recexch, recexch, ring, ring, own, own]
    assert {chosen(main, KIB, comm_size=n) for n in (2, 3, 5, 8)} == {own}
    assert chosen(main, 4 * KIB, is_commutative="no", is_op_built_in="no") == doubling
    shared = "MPIDI_POSIX_mpi_allreduce_release_gather"
    assert [chosen(posix, n) for n in (KIB, 2049, 16384, 16385)] == [shared, None, None, shared]
    assert chosen(posix, 4 * KIB, comm_size=8) == shared
    # Everything else is MPICH's own.
    assert set(main) > {"collective=bcast", "collective=ialltoallw"}


def test_mpich_s_third_file_says_how_an_operation_is_split() -> None:
    export = mpich(
        document(8, KIB, cvars("ALLREDUCE", COMPOSITION="1"), "allreduce"),
        document(4 * KIB, 4 * KIB, cvars("ALLREDUCE", COMPOSITION="2"), "allreduce"),
        document(8, KIB, cvars("BCAST", COMPOSITION="3"), "broadcast"),
    )
    assert [file.variable for file in export.files] == [
        f"MPIR_CVAR_{infix}COLL_SELECTION_TUNING_JSON_FILE" for infix in ("", "CH4_")
    ]
    tree = read_by_mpich(export.files[1].text)
    call = {"comm_type": "intra", "comm_size": 4, "node_comm_size": 4, "comm_hierarchy": "parent"}

    def chosen(collective: str, size: int, **other: Any) -> str | None:
        own = {**call, "is_commutative": "yes", "avg_msg_size": size, **other}
        key = f"collective={collective}"
        found = found_by_mpich({key: tree[key]}, **own, collective=collective)
        return found and found.rsplit("_", 1)[1]

    assert [chosen("allreduce", n) for n in (8, 2048, 2049, 4096)] == ["alpha"] * 2 + ["beta"] * 2
    # Where the first can't be done, as MPICH has it: not over a part of a communicator, and only
    # in any order.
    assert chosen("allreduce", 8, comm_hierarchy="node") == "beta"
    assert chosen("allreduce", 8, is_commutative="no") == "beta"
    assert chosen("bcast", 8) == "gamma"
    several = cvars("ALLTOALL", COMPOSITION="1")
    with pytest.raises(ExportRefused, match="can't say MPIR_CVAR_ALLTOALL_COMPOSITION=1"):
        mpich(
            document(8, 8, several, "alltoall"),
            document(64, 64, cvars("ALLTOALL", COMPOSITION="2"), "alltoall"),
        )


def test_mpich_s_parameters_that_a_file_lacks_are_refused() -> None:
    for settings in (
        cvars("ALLREDUCE", INTRA_ALGORITHM="tree", TREE_KVAL="4"),
        cvars("ALLREDUCE", INTRA_ALGORITHM="ring", RECEXCH_KVAL="4"),
        cvars("ALLREDUCE", INTRA_ALGORITHM="tree"),
    ):
        other = document(64, 64, cvars("ALLREDUCE", INTRA_ALGORITHM="ring"), "allreduce")
        with pytest.raises(ExportRefused, match="mpich-json can't say"):
            mpich(document(8, 8, settings, "allreduce"), other)


def test_rules_are_for_one_node() -> None:
    with pytest.raises(ExportRefused, match="mpich-json is for one node"):
        mpich(document(8, 8, cvars("ALLREDUCE", INTRA_ALGORITHM="ring"), "allreduce", nodes=2))
    ring = document(8, 8, tuned("allreduce", algorithm="ring"), "allreduce", nodes=2)
    table = RuleTable.of_documents([ring], "openmpi", "5.0.11")
    with pytest.raises(ExportRefused, match=r"openmpi-rules is for one node: .* han"):
        render_rules(RULE_FORMATS["openmpi-rules"], table, None)


def test_mpich_s_rules_need_the_library() -> None:
    settings = cvars("ALLREDUCE", INTRA_ALGORITHM="ring")
    with pytest.raises(ExportRefused, match="no recursive doubling"):
        doubling = cvars("ALLGATHER", INTRA_ALGORITHM="recursive_doubling")
        mpich(document(8, 8, doubling, "allgather", ranks=3))
    table = RuleTable.of_documents([document(8, 8, settings, "allreduce")], "mpich", "5.0.2")
    with pytest.raises(MissingComponent, match="copies them"):
        render_rules(RULE_FORMATS["mpich-json"], table, Path("/nowhere"))


def test_mpich_s_file_never_fills_its_last_page() -> None:
    """It maps the file and reads to a zero byte: at the end of a page, there may be none."""
    made = document(8, 8, cvars("ALLREDUCE", INTRA_ALGORITHM="ring"), "allreduce")
    short = len(mpich(replace(made, system="x")).files[0].text)
    (file,) = mpich(replace(made, system="x" * (1 + -short % 4096))).files
    assert len(file.text) % 4096 == 1


def test_a_file_with_a_likely_speedup_says_so() -> None:
    likely = document(8, KIB, tuned("allreduce", algorithm="ring"), "allreduce")
    likely = replace(likely, profile=replace(likely.profile, verdict=Verdict.LIKELY))
    proven = document(64 * KIB, 64 * KIB, tuned("allreduce", algorithm="3"), "allreduce")
    for accepted in (True, False):
        table = RuleTable.of_documents(
            [likely, proven], "openmpi", "5.0.11", accept_likely=accepted
        )
        (file,) = render_rules(RULE_FORMATS["openmpi-rules"], table, None).files
        assert ("# WARNING: NOT PROVEN." in file.text) is accepted
        ring = looked_up(read_by_open_mpi(file.text), 2, 4, KIB)
        assert ring == ((4, 0, 0) if accepted else (0, 0, 0))
