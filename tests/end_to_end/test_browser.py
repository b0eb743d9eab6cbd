"""The pages in a browser, beside a campaign: all of them, while it goes on.

With COMMTUNE_PICTURES=docs/images it makes the documentation's pictures of them, on a real MPI.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from command_line import SMALL, Child, CommandLine
from components import require_component
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    ViewportSize,
    expect,
    sync_playwright,
)
from stored_campaigns import Made
from stores import opened_store
from waiting import PATIENCE_S

from commtune.app.profiles.reporting import render_campaign_report
from commtune.service.pages import PAGES

_CHROMIUM = shutil.which("chromium") or ""
_Scheme = Literal["light", "dark"]
_SCHEMES: tuple[_Scheme, ...] = ("light", "dark")
#: Faults of this kind keep somebody from using a page.
_SERIOUS = ("critical", "serious")
_PATIENCE_MS = 1000 * PATIENCE_S
_PHONE = ViewportSize(width=390, height=844)
_DESK = ViewportSize(width=1280, height=900)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """The system's Chromium."""
    require_component("chromium", bool(_CHROMIUM))
    # As root, as in CI, Chromium has no sandbox.
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[BrowserContext]:
    """Its window, without anything of the tests before."""
    with chromium.new_context(viewport=_DESK) as made:
        yield made


@contextmanager
def tuning(commtune: CommandLine) -> Iterator[Child]:
    """A controller, which is gone afterwards."""
    with commtune.start_anew("tune", "campaign.yaml") as controller:
        try:
            yield controller
        finally:
            controller.kill()
            controller.communicate()


@contextmanager
def served(commtune: CommandLine) -> Iterator[tuple[str, str]]:
    """``commtune serve --control``; the two addresses that it prints."""
    with commtune.start("serve", "--bind", "127.0.0.1:0", "--control") as service:
        assert service.stdout is not None
        try:
            reads, controls = (service.stdout.readline().split()[-1] for _ in range(2))
            yield reads, controls
        finally:
            service.send_signal(signal.SIGINT)
            out, err = service.communicate(timeout=PATIENCE_S)
    said, *ended = err.splitlines()
    assert (out, said) == ("", "read-only but for the second address; Ctrl-C ends it")
    assert all(one.startswith("ended over HTTP: campaign 'small': 'process ") for one in ended)


def watched(browser: BrowserContext, address: str, seen: list[str]) -> Page:
    """A page that notes what goes wrong in it, and what it asks of others."""
    page = browser.new_page()
    page.set_default_timeout(_PATIENCE_MS)
    expect.set_options(timeout=_PATIENCE_MS)
    host = urlsplit(address).netloc
    page.on("console", lambda said: seen.append(f"{said.type}: {said.text} {said.location}"))
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on(
        "request",
        lambda asked: None if urlsplit(asked.url).netloc == host else seen.append(asked.url),
    )
    return page


def now(page: Page, name: str) -> str:
    """What the page says of its campaign."""
    return page.locator(f'[data-live="{name}"]').inner_text()


def until_now(page: Page, name: str, pattern: str) -> None:
    expect(page.locator(f'[data-live="{name}"]')).to_have_text(re.compile(pattern))


def check_accessibility(page: Page) -> None:
    """No serious fault by axe-core, in light and dark; nothing is cut off on a phone."""
    for scheme in _SCHEMES:
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page).response["violations"]
        assert [
            (one["id"], [node["target"] for node in one["nodes"]])
            for one in found
            if one["impact"] in _SERIOUS
        ] == [], f"{page.url} in {scheme}"
    page.set_viewport_size(_PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= _PHONE["width"], page.url
    page.set_viewport_size(_DESK)


def take_picture(page: Page, name: str, scheme: _Scheme = "light", *, whole: bool = False) -> None:
    """A picture for the documentation, where it is asked for."""
    if folder := os.environ.get("COMMTUNE_PICTURES"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=Path(folder) / f"service-{name}.png", full_page=whole)


def picture_of(part: Locator, name: str) -> None:
    """The same of a part of a page."""
    if folder := os.environ.get("COMMTUNE_PICTURES"):
        part.screenshot(path=Path(folder) / f"service-{name}.png")


def test_a_campaign_is_watched_killed_and_resumed(
    commtune: CommandLine, browser: BrowserContext
) -> None:
    has_mpi = "COMMTUNE_PICTURES" in os.environ
    write = commtune.write if has_mpi else commtune.write_without_mpi
    # It is not done before the browser has seen it, however long that takes.
    write(SMALL.replace("trials: 3", "trials: 1000"))
    seen: list[str] = []
    with served(commtune) as (address, controls):
        page = watched(browser, address, seen)
        page.goto(address)
        assert "token" not in page.url and "No campaigns yet" in page.inner_text("main")

        with tuning(commtune) as controller:
            while not page.get_by_role("link", name="small").count():
                assert controller.poll() is None
                page.wait_for_timeout(500)  # a reload costs more than it shows
                page.reload()
            # By the keyboard alone: past the navigation, and to the campaign.
            page.keyboard.press("Tab")
            assert page.evaluate("document.activeElement.className") == "skip"
            page.get_by_role("link", name="small").focus()
            page.keyboard.press("Enter")
            until_now(page, "state", "^running$")
            assert f"process {controller.pid}" in now(page, "by")
            runs = now(page, "runs")
            until_now(page, "runs", f"^(?!{runs}$)")  # it progresses, and nobody reloads
            page.locator("[data-runs] tr").first.wait_for()
            take_picture(page, "running")
            controller.send_signal(signal.SIGKILL)
            controller.communicate()
        until_now(page, "state", "^stopped$")
        until_now(page, "by", "^nobody$")
        take_picture(page, "killed")
        runs = now(page, "runs")

        with tuning(commtune) as controller:
            until_now(page, "state", "^running$")
            until_now(page, "runs", f"^(?!{runs}$)")
            take_picture(page, "resumed")
            campaign = page.url
            page.goto(controls)
            page.goto(campaign)
            page.get_by_role("button", name="End this campaign").click()
            page.wait_for_url(campaign)
            assert controller.wait(timeout=2 * PATIENCE_S) == 130
        until_now(page, "state", "^stopped$")
        # The page as while it runs, and the button. Checked now, it takes no time from runs.
        check_accessibility(page)

        write(SMALL)
        with tuning(commtune) as controller:
            assert controller.wait(timeout=2 * PATIENCE_S) == 0
        until_now(page, "state", "^finished$")
        # The page gets the tables of the profiles by itself.
        operation = "allreduce" if has_mpi else "own:run.sh"
        page.get_by_role("heading", name=re.compile(operation)).first.wait_for()

        campaign_page = urlsplit(page.url).path
        take_picture(page, "dark", "dark")
        page.set_viewport_size(_PHONE)
        take_picture(page, "phone")
        walk_every_page(page, campaign_page, operation)
    assert seen == []


def walk_every_page(page: Page, campaign: str, operation: str) -> None:
    """All pages, by the links and forms that lead to them."""
    walked = set()

    def look(path: str) -> None:
        walked.add(path)
        assert page.locator("h1").count() == 1
        check_accessibility(page)

    look("/campaigns/{campaign}")
    page.get_by_role("link", name="All runs").click()
    page.wait_for_url(f"**{campaign}/runs")
    look("/campaigns/{campaign}/runs")
    page.get_by_label("Outcome").select_option("ok")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("outcome=ok"))
    page.locator(".runs th a").first.click()
    page.get_by_role("heading", name="The end of its output").wait_for()
    look("/campaigns/{campaign}/runs/{run}")
    page.get_by_role("link", name="Campaigns").click()
    look("/")
    page.get_by_label("Operation").fill(operation)
    page.get_by_label("Message size").fill("64KiB")
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="The evidence").wait_for()
    look("/best")
    page.goto(page.url.partition("/best")[0] + campaign)
    page.get_by_role("link", name="Compare with another").click()
    for side in ("left", "right"):
        page.locator(f"select[name={side}]").select_option("campaign:small")
    page.get_by_label("Operation").fill(operation)
    page.get_by_role("button", name="Compare").click()
    page.get_by_role("heading", name="What differs").wait_for()
    look("/compare")
    page.goto(page.url.partition("/compare")[0] + campaign)
    page.locator("h3 a").first.click()
    page.get_by_role("heading", name="Verifications").wait_for()
    look("/profiles/{number}")
    page.goto(page.url.partition("/profiles")[0] + campaign)
    page.get_by_role("link", name="Report").click()
    page.wait_for_url("**/report")
    assert "commtune report" in page.content()  # all else that reports show is in a test below
    walked.add("/campaigns/{campaign}/report")
    assert walked == {one.path for one in PAGES}


def test_a_profile_shows_its_drift_and_its_exports(
    commtune: CommandLine, browser: BrowserContext
) -> None:
    folder = commtune.folder / "data" / "commtune"
    folder.mkdir(parents=True, mode=0o700)
    with opened_store(folder / "commtune.db") as store:
        Made(trials=20, blocks=24).store(store)
        with store.database.write() as connection:
            for statement in _VERIFIED_LATER:
                connection.exec_driver_sql(statement)
    seen: list[str] = []
    with served(commtune) as (address, _):
        page = watched(browser, address, seen)
        page.goto(address)
        page.get_by_role("link", name="made-up", exact=True).click()
        buttons = page.get_by_role("list", name=re.compile("^Export"))
        with page.expect_download() as file:
            buttons.get_by_role("link", name="env").click()
        assert "LIB_ALGORITHM=tree" in file.value.path().read_text()
        picture_of(buttons.locator(".."), "exports")
        page.goto(f"{page.url.partition('/campaigns')[0]}/profiles/2")
        days = page.get_by_role("region", name="Verifications", exact=True)
        expect(days).to_contain_text("2023-11-24")
        expect(days).to_contain_text("2023-12-04")
        check_accessibility(page)
        take_picture(page, "drift", whole=True)
        page.goto(f"{page.url.partition('/profiles')[0]}/campaigns/made-up/runs?outcome=crashed")
        page.locator(".runs th a").first.click()
        expect(page.locator("pre").last).to_have_text("made-up: rank 1 lost rank 0\n<b>exit 9</b>")
        take_picture(page, "run", whole=True)
    assert seen == []


#: The last blocks become verifications of ten and twenty days later; the tuned runs of the second
#: one are as slow as the default was.
_VERIFIED_LATER = (
    """UPDATE runs SET output_tail = 'made-up: rank 1 lost rank 0
<b>exit 9</b>' WHERE outcome = 'crashed'""",
    """UPDATE runs SET phase = 'verify', session = 'ten', started_at = started_at + 864000
       WHERE phase = 'confirm' AND block > (SELECT MAX(block) - 12 FROM runs)""",
    """UPDATE runs SET session = 'twenty', started_at = started_at + 864000
       WHERE phase = 'verify' AND block > (SELECT MAX(block) - 6 FROM runs)""",
    """UPDATE measurements SET median_s = median_s * 1.4 WHERE run_id IN (
       SELECT r.id FROM runs r JOIN trials t ON t.id = r.trial_id
       WHERE r.session = 'twenty' AND t.number <> 0)""",
    *(
        f"""INSERT INTO verifications (campaign_id, configuration_id, profile, finding,
              first_block, last_block, share, session_spread, ended_at)
            SELECT p.campaign_id, p.configuration_id, p.name, '{finding}',
              MIN(r.block), MAX(r.block), 0.15, 0.2, MAX(r.started_at)
            FROM profiles p JOIN runs r ON r.campaign_id = p.campaign_id
            WHERE p.id = 2 AND r.session = '{session}'
            GROUP BY p.campaign_id, p.configuration_id, p.name"""
        for session, finding in (("ten", "holds"), ("twenty", "gone"))
    ),
)


def test_a_report_of_all_kinds_of_findings_is_accessible(
    browser: BrowserContext, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'made.db'}"
    with opened_store(url) as store:
        Made(trials=20, blocks=12).store(store)
    page = browser.new_page()
    # As a file: axe-core is a script, and the service allows none in reports.
    page.set_content(render_campaign_report("made-up", url))
    check_accessibility(page)
