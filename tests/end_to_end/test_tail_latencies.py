"""Campaigns about the 95th percentile of a run's operations, from file to verification."""

from __future__ import annotations

import json
import re

import pytest
from command_line import CommandLine
from step_program import MODES_SPACE, STEP_CAMPAIGN

#: Without the setting, operations are faster, but for three in 41. The last digits of the clock
#: make times as uncertain as programs are.
_PROGRAM = """\
digits=$(date +%N | cut -c7-9)
case ${MYLIB_MODE:-unset} in
    fast) usual=1.2${digits}e-3 slow=$usual ;;
    *) usual=1.0${digits}e-3 slow=3.0${digits}e-3 ;;
esac
times=$slow,$slow,$slow
for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19; do times=$times,$usual,$usual; done
echo "{\\"bytes\\": 1, \\"times_s\\": [$times]}"
"""
_RATIOS = "speedups are ratios of 95th percentiles of operations"
_BEST = ("best", "--bytes", "1", "--op", "own:step")
_PROFILE = "tails/own:step-1-1"


def tune(commtune: CommandLine, name: str, estimand: str) -> str:
    """Tunes the program; returns what was said."""
    text = STEP_CAMPAIGN.replace("name: step\n", f"name: {name}\n", 1)
    text = text.replace("ranks: 2", "ranks: 1").replace("trials: 4", "trials: 2")
    commtune.write(f"{text}estimand: {estimand}\n")
    return commtune.succeed("tune", "campaign.yaml").out


def test_a_setting_that_shortens_only_the_slowest_operations(commtune: CommandLine) -> None:
    commtune.write(_PROGRAM, "step.sh")
    commtune.write(MODES_SPACE.replace(", slow, broken, wrong", ""), "space.yaml")
    tuned = tune(commtune, "tails", "p95")
    (answer,) = json.loads(commtune.succeed(*_BEST, "--json").out)
    (point,) = answer["points"]
    assert (answer["verdict"], answer["conditions"]["estimand"]) == ("faster", "p95")
    assert point["default_s"] == pytest.approx(3e-3, rel=0.1)
    assert point["gain"]["ratio"] == pytest.approx(2.5, rel=0.1)
    slower = r"medians are longer at 1 B: 0\.8\dx as fast at 1 B \(\d+ pairs, no interval\)"
    assert re.search(slower, answer["note"])
    # What is read from the database is compared in the same way.
    verified = json.loads(commtune.succeed("verify", _PROFILE, "--time", "3s", "--json").out)
    assert (verified["finding"], verified["estimand"]) == ("holds", "p95")
    shown = json.loads(commtune.succeed("show", _PROFILE, "--json").out)
    assert shown["tails"] == [answer["tail"]]
    for tail in (answer["tail"], *verified["tails"]):
        assert tail["mean_low"] <= tail["mean_ratio"] <= tail["mean_high"]
        assert tail["mean_ratio"] == pytest.approx(2.5, rel=0.2)
        assert 0 <= tail["slow_runs"] <= tail["pairs"]
    shown = ((*_BEST,), ("show", _PROFILE), ("export", _PROFILE, "--format", "sh"))
    said = [tuned, *(commtune.succeed(*words).out for words in shown)]
    assert all(_RATIOS in one for one in said), said
    exported = json.loads(commtune.succeed("export", _PROFILE, "--format", "json").out)
    assert exported["profile"]["conditions"]["estimand"] == "p95"
    assert ") at 1 B, of 95th percentiles of operations" in commtune.succeed("status").out
    commtune.succeed("report", "tails", "-o", "tails.html")
    page = (commtune.folder / "tails.html").read_text()
    assert "95th percentiles of operations over the runs" in page
    # Of medians it is slower, which is the better known question and comes first.
    assert "Keep the default" in tune(commtune, "medians", "median")
    answer = json.loads(commtune(*_BEST, "--json").out)[0]
    assert (answer["campaign"], answer["verdict"]) == ("medians", "default")
    refused = commtune("compare", _PROFILE, "medians/own:step-1-1")
    assert refused.code == 2
    assert "of median times and of 95th percentiles of operations" in refused.err
