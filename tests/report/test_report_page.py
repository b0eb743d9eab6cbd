"""Reports of campaigns that lie in a real database, through the command."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import database_values as given
import pytest
from page_reader import PageReader
from report_words import render_words
from stored_campaigns import Made, nothing
from stored_conclusions import TUNED
from stores import opened_store

from commtune.app.profiles.reporting import write_campaign_report
from commtune.db.queries.description import describe_campaign
from commtune.db.storage.store import Store
from commtune.errors import NoAnswer, UnknownName, UserError
from commtune.model import Interval, PointEvidence, Verdict
from commtune.report.page import Page
from commtune.report.points import _pairs_of
from commtune.report.record import read_record
from commtune.systems.loading import load_system
from commtune.systems.nominal.fabric import fabric_of
from commtune.systems.nominal.operations import FABRIC

Report = Callable[[Made], str]


@pytest.fixture
def stored(store: Store) -> Callable[[Made], str]:
    """Stores a campaign; returns its name."""

    def put(made: Made) -> str:
        made.store(store)
        return made.name

    return put


@pytest.fixture
def report(url: str, stored: Callable[[Made], str], tmp_path: Path) -> Report:
    """Stores a campaign, and returns its page."""

    def make(made: Made) -> str:
        page = tmp_path / "page.html"
        write_campaign_report(stored(made), page, None, url)
        return page.read_text(encoding="utf-8")

    return make


@pytest.fixture
def words(store: Store, url: str) -> Report:
    """Stores a campaign, and returns the text of its page, whose figures are not drawn."""

    def make(made: Made) -> str:
        made.store(store)
        return shown(render_words(page_of(store, url)))

    return make


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of the campaign that most tests look at."""
    folder = tmp_path_factory.mktemp("usual")
    url = f"sqlite:///{folder}/commtune.db"
    with opened_store(url) as store:
        Made(trials=150, blocks=20, loaded=0.02).store(store)
    write_campaign_report("made-up", folder / "page.html", None, url)
    return (folder / "page.html").read_text(encoding="utf-8")


def page_of(store: Store, url: str) -> Page:
    return Page(read_record(store, url, describe_campaign(url, "made-up")))


def shown(page: str) -> str:
    """The text of a page, with single blanks."""
    return re.sub(r"\s+", " ", "".join(PageReader(page).texts))


def test_the_answer_comes_first_with_its_numbers(usual: str) -> None:
    said = shown(usual)
    answer = said[said.index("The answer") : said.index("The evidence")]
    assert "Keep the default for 8 B to 1 KiB." in answer
    found = re.search(
        r"Use this for 64 KiB to 1 MiB: at least (1\.\d\d)x as fast on average over its sizes "
        r"\((1\.\d\d)x, \d+ pairs or more at each\)\.",
        answer,
    )
    assert found and 1.38 < float(found[2]) < 1.50  # planted: 1.25 x 1.15
    assert 1.25 < float(found[1]) < float(found[2])
    gain = r"1\.\d\dx to 1\.\d\dx \(1\.\d\dx, \d+ pairs\) at .+"
    assert re.search(f"Least: {gain}. Most: {gain}", answer)
    for name, value in TUNED.items():
        assert f"{name}={value}" in answer
    assert "commtune export made-up/allreduce-65536-1048576 --format sh" in answer


def test_a_time_that_was_derived_from_the_ratio_is_marked(store: Store, url: str) -> None:
    derived = PointEvidence(
        "allreduce", 64, "all", 6.1e-6, 7.34e-6, Interval(1.42, 1.21, 1.66, 20), Verdict.FASTER
    )
    guard = replace(derived, operation="broadcast", default_s=6.2e-6)
    stored = given.profile("p", points=(derived,), guards=(guard,), bytes_low=8)
    store.save_profiles(Made(trials=5).store(store), [stored])
    page = render_words(page_of(store, url))
    assert [f">{time}</td>" in page for time in ("~4.30 us", "~4.37 us")] == [True, True]


def test_keep_the_default_says_what_would_have_been_found(words: Report) -> None:
    said = words(Made(trials=5, blocks=7, effect=nothing, loaded=0.0))
    assert "Keep the default for 8 B to 1 MiB." in said
    assert "No gain was shown here; one of up to 7% could still be hidden." in said
    assert "Use this" not in said
    assert "The search made too few runs to tell variables apart." in said


def test_facts_of_the_machine_are_words(words: Report) -> None:
    facts = {"gpus": [], "nics": ["ethernet virtio_net None", "ib mlx5 200000"], "cores": 2}
    assert "gpus– nicsethernet virtio_net, ib mlx5 200000" in words(Made(description=facts))


def test_every_section_speaks(usual: str) -> None:
    said = shown(usual)
    for part in (
        "3 variables down to 2, dropped by ablation in 20 blocks: "
        "LIB_IDLE (98 % of the speedup kept).",
        "64 KiB to 1 MiB: 1.25",  # where a variable helps
        "8 B: 0.91",  # where it hurts
        "One environment for all sizes is 1.17 times as fast",
        "the best environment for each range of sizes is 1.20 times as fast",
        "1 KiB is undecided: a further confirmation of about 120 runs (35 s) would decide it.",
        "Where the ranges part",
        "1 KiB and 64 KiB",
        "LIB_ALGORITHM=hang",  # shared by all runs that crashed
        "rank 1 ended by signal 11",
        "sums as recursive_doubling does at every size",
        "looked at up to 3 times",
        "hold with 95%",
    ):
        assert part in said, part


def test_a_usual_page_says_nothing_of_what_was_not(usual: str) -> None:
    said = shown(usual)
    for part in ("confirmation number", "changed from", "the campaign's messages", "95 % each"):
        assert part not in said, part


def test_asking_again_weights_and_other_values_are_said(words: Report) -> None:
    said = words(Made(weighted=True, confirmations=2, refined=True))
    assert "This was confirmation number 2 of the campaign" in said
    assert "may spend 10 % of the error rate" in said
    assert said.count("as the default over the campaign's messages (their time in all)") == 1
    assert "on average over the sizes;" not in said
    assert "LIB_EAGER_THRESHOLD changed from 4096 to 65536, " in said
    assert "(more than the whole speedup kept)" in said


def test_a_page_needs_nothing_else(usual: str) -> None:
    reader = PageReader(usual)
    names = {tag for tag, _ in reader.tags}
    assert names.isdisjoint({"script", "link", "img", "iframe", "object", "base"})
    for tag, attributes in reader.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), tag
            if name in ("href", "src", "xlink:href"):
                assert value is not None and value.startswith("#"), (tag, value)
    addresses = set(re.findall(r"https?://[^\"' )]+", usual))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_a_page_can_be_heard_and_found_in(usual: str) -> None:
    reader = PageReader(usual)
    levels = [int(tag[1]) for tag, _ in reader.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    identifiers = [a["id"] for _, a in reader.tags if "id" in a]
    assert len(identifiers) == len(set(identifiers))
    links = {str(a["href"])[1:] for tag, a in reader.tags if tag == "a"}
    assert links and links <= set(identifiers)
    pictures = [a for _, a in reader.tags if a.get("role") == "img"]
    assert len(pictures) >= 5
    assert all(len(str(a["aria-label"])) > 30 for a in pictures)
    reached = [a for _, a in reader.tags if "tabindex" in a and a.get("role") != "img"]
    assert len(reached) >= 8 and all(a.get("role") == "region" for a in reached)
    names = [a["aria-label"] for a in reached]
    assert all(names) and len(names) == len(set(names)), names


def is_warned(page: str, banner: str) -> bool:
    """Whether a page says before all else that it measured nothing, and offers nothing to use."""
    said = shown(page)
    return said.index(banner) < said.index("The answer") and "commtune export" not in said


NASTY = "a<b>&\"'</style><script>alert(1)</script>{{ 7*7 }} $x_1$ \u4e2d\u6587"


def test_whatever_stands_in_the_database_stays_text(report: Report) -> None:
    made = Made(name=NASTY, description={NASTY: NASTY}, replayed=NASTY)
    page = report(made)
    reader = PageReader(page)
    assert is_warned(page, f"REPLAYED from the recorded grid {NASTY}")
    assert {"script", "b"}.isdisjoint({tag for tag, _ in reader.tags})
    said = shown(page)
    assert said.count(NASTY) >= 4
    assert "{{ 7*7 }}" in said


def test_a_real_campaign_has_no_banner(usual: str) -> None:
    said = shown(usual)
    assert "SIMULATED" not in said and "REPLAYED" not in said


def test_a_campaign_without_a_conclusion_says_what_is_missing(words: Report) -> None:
    said = words(Made(concluded=False))
    assert "Use this for 64 KiB to 1 MiB" in said
    assert "No conclusion is stored" in said
    assert "one of up to 7% could still be hidden" in said


def test_a_campaign_that_was_only_begun_with_its_pictures_elsewhere(
    url: str, stored: Callable[[Made], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pictures = tmp_path / "pictures"
    made = Made(name="../a/b: c", trials=3, blocks=0, concluded=False)
    write_campaign_report(stored(made), None, pictures, url)
    said = shown((tmp_path / "a-b-c.html").read_text(encoding="utf-8"))
    assert "Nothing is recommended yet." in said
    assert "The campaign is not finished" in said
    assert {file.name for file in pictures.iterdir()} == {"noise.png", "spent.png"}


def test_times_that_never_change_are_drawn(report: Report) -> None:
    """A command may say the same each time; an axis without length would be a warning."""
    page = report(Made(effect=nothing, noise=0, loaded=0))
    assert "Pale bars don't clear the tick of noise" in page


def test_a_few_disturbed_trials_leave_gaps_in_tables(report: Report) -> None:
    made = Made(trials=64, blocks=7, slow_share=0.4, mixed_share=0.65, concluded=False, seed=2)
    page = report(made)
    assert "<td></td><td></td>" in page, "a variable that only some ranges speak of"


@pytest.mark.slow
def test_a_large_campaign_with_two_speeds_stays_small_enough_to_mail(report: Report) -> None:
    sizes = tuple(2**power for power in range(3, 23))
    page = report(Made(trials=150, blocks=150, sizes=sizes, slow_share=0.4))
    assert len(page.encode()) < 2_000_000
    said = shown(page)
    assert "the first 60 blocks of" in said
    assert "alternated between 2 states" in said
    assert "95 % each" not in said, "there are no rows over all speeds"
    rows = re.findall(r'<tr><th scope="row">64 KiB</th>\s*<td>(\w+)</td>', page)
    assert {"fast", "slow"} <= set(rows)


def test_rows_of_one_speed_beside_those_of_all_are_told_apart(report: Report) -> None:
    said = shown(report(Made(trials=5, blocks=20, slow_share=0.4, whole=True)))
    # Below the table, and among the words on the method.
    assert said.count("A row of one machine state has an interval of its own, 95 % each.") == 2


def test_only_pairs_that_intervals_are_made_of_are_shown(store: Store, url: str) -> None:
    Made(trials=5, blocks=9, broken=True).store(store)
    record = read_record(store, url, describe_campaign(url, "made-up"))
    pairs = _pairs_of(record)
    assert {cell for _, cell in pairs} == {(size, "all") for size in Made().sizes}
    assert {len(found) for found in pairs.values()} == {9}


def test_a_border_with_an_interval_that_says_nothing_has_no_number(store: Store, url: str) -> None:
    Made(trials=5, blocks=9).store(store)
    page = page_of(store, url)
    (border,) = page.borders
    wild = replace(border.sides[0], ratio=0.54, low=0.003, high=109.1)
    page.borders = (replace(border, sides=(wild,)),)
    said = shown(render_words(page))
    part = said[said.index("Where the ranges part") : said.index("Minimum detectable effect")]
    assert "too noisy" in part and "109" not in part


def test_sizes_where_any_gain_may_be_hidden_are_named(store: Store, url: str) -> None:
    Made(trials=5, blocks=20).store(store)
    record = read_record(store, url, describe_campaign(url, "made-up"))
    known = {s: g for s, g in record.conclusion.detectable.items() if s != 1024}
    conclusion = replace(record.conclusion, detectable=known)
    said = shown(render_words(Page(replace(record, conclusion=conclusion))))
    part = said[said.index("Minimum detectable effect") :]
    assert re.search(r"8 B ?3\.1 % .*1 KiB ?any: too noisy", part)
    assert said.count("any: too noisy") == 1


@pytest.mark.slow
def test_a_folder_gets_the_page_and_its_pictures(
    url: str, stored: Callable[[Made], str], tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "folder"
    ports = asdict(fabric_of(load_system("leonardo")))
    workload = {"ranks": 64, "nodes": 2}
    made = Made(simulated=True, settings={FABRIC: ports}, workload=workload)
    written = write_campaign_report(stored(made), folder, None, url)
    assert written[0] == folder / "report.html"
    pictures = {"gains", "bandwidth", "runs", "ablation-1", "importance", "noise", "spent"}
    names = {"report.html", *(f"{name}.png" for name in pictures)}
    assert {file.name for file in folder.iterdir()} == names
    assert {folder / name for name in names} == set(written)
    for file in folder.glob("*.png"):
        assert file.read_bytes().startswith(b"\x89PNG")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert is_warned(page, "SIMULATED: says nothing about a real system")
    assert "nominal 98.4 GB/s" in page


def test_an_unknown_campaign_is_told_from_those_there_are(
    url: str, stored: Callable[[Made], str], tmp_path: Path
) -> None:
    stored(Made(name="mpich-allreduce"))
    with pytest.raises(UnknownName, match="no campaign mpich-alreduce") as raised:
        write_campaign_report("mpich-alreduce", tmp_path / "page.html", None, url)
    assert raised.value.hint == "campaigns: mpich-allreduce"


def test_no_database_is_not_made_for_a_report(url: str, tmp_path: Path) -> None:
    with pytest.raises(NoAnswer):
        write_campaign_report("a", tmp_path / "page.html", None, url)
    assert not (tmp_path / "commtune.db").exists()


def test_a_place_that_cant_be_written_is_said(
    url: str, stored: Callable[[Made], str], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"can't write .*file: File exists"):
        write_campaign_report(stored(Made()), tmp_path / "file" / "page.html", None, url)


def test_drawing_needs_no_extra() -> None:
    """What ``tune`` suggests works."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert any(needed.startswith("matplotlib") for needed in project["dependencies"])
