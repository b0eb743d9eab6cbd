"""Templates: options of the job, a user's own folder, and mistakes that are refused."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from waiting import PATIENCE_S, wait_for

from commtune.errors import UserError
from commtune.model import JobScheduler
from commtune.slurm_templates.background_command import BackgroundCommand
from commtune.slurm_templates.job_request import JobRequest, job_for
from commtune.slurm_templates.launch_command import launch_words
from commtune.slurm_templates.quoting import ShellCode
from commtune.slurm_templates.rendering import Job, Step, render_allocation, render_block
from commtune.systems.loading import load_system

GOLDEN = Path(__file__).parent / "golden"
JOB = Job("plain", 2, 4, 90, "job.out")
STEP = Step(("srun", "program"), "out", "exit", {"A": "it's"}, time_limit_s=9)


def example(name: str) -> str:
    """The scripts whose text is kept."""
    if name == "lumi-block":
        return _on_lumi()
    wish = JobRequest(
        account="project_1", qos="boost_qos_dbg", nodes=2, ranks_per_node=4,
        before=ShellCode("ulimit -s unlimited"), after=ShellCode("echo done"),
    )  # fmt: skip
    leonardo, libraries = load_system("leonardo"), {"openmpi", "ucx"}
    job = job_for(
        leonardo, wish, name="commtune-7-3", time_s=1800, output="/scratch/me/block.out",
        exclude=("lrdn0003", "lrdn0001"), warn_s=120, libraries=libraries,
    )  # fmt: skip
    if name == "leonardo-block":
        words = launch_words(leonardo, wish, ("/home/me/bench",), libraries)
        variables = {"UCX_RNDV_THRESH": "inf", "NOTE": "a\n$(b)"}
        step = Step(
            words,
            "0.out",
            "0.exit",
            variables,
            time_limit_s=30,
            beside=BackgroundCommand(("srun", "noise")),
        )
        return render_block(job, (step,), ".")
    return render_allocation(job, ("commtune", "tune", "my campaign.yaml"))


def _on_lumi() -> str:
    lumi, libraries, folder = load_system("lumi"), {"cray-mpich"}, "/scratch/me/a night's campaign"
    wish = JobRequest(account="project_1", nodes=2, ranks_per_node=8)
    words = launch_words(lumi, wish, ("/home/me/bench", "--op", "allreduce"), libraries)
    variables = [{}, {"MPICH_OFI_NIC_POLICY": "GPU", "FI_CXI_RDZV_THRESHOLD": "16384"}]
    steps = [
        Step(words, f"{folder}/{i}.out", f"{folder}/{i}.exit", one, time_limit_s=12.5)
        for i, one in enumerate(variables)
    ]
    output = "/scratch/me/block.out"
    job = job_for(lumi, wish, name="commtune-7-3", time_s=3600, output=output, libraries=libraries)
    return render_block(job, tuple(steps), folder)


@pytest.mark.parametrize("name", ["lumi-block", "leonardo-block", "leonardo-allocation"])
def test_scripts_are_as_they_were(name: str) -> None:
    # COMMTUNE_WRITE_GOLDEN=1 writes them again; read the difference before you commit it.
    file = GOLDEN / f"{name}.sh"
    if os.environ.get("COMMTUNE_WRITE_GOLDEN"):
        file.write_text(example(name), encoding="ascii")
    assert example(name) == file.read_text(encoding="ascii")
    subprocess.run(["bash", "-n", file], check=True)  # no syntax error


def options(script: str) -> list[str]:
    """What sbatch reads: its lines before the first command."""
    head = script.split("\ncompgen ")[0]
    return [line for line in head.splitlines() if line.startswith("#SBATCH")]


def test_what_is_not_asked_for_is_not_there() -> None:
    assert options(render_block(JOB, (STEP,), "block")) == [
        "#SBATCH --job-name=plain",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=4",
        "#SBATCH --time=0-00:02:00",
        "#SBATCH --output=job.out",
        "#SBATCH --no-requeue",
        "#SBATCH --export=ALL",
    ]


def test_every_option_has_its_line() -> None:
    full = replace(
        JOB, account="a1", partition="p", qos="q", constraint="[a|b]&c*2", reservation="r",
        network="disable_rdzv_get",
        memory="0", gres="gpu:4", exclude="n3", comment="id:7",
        gpus_per_node=8, cpus_per_rank=7, exclusive=True, warn_s=60, switches=1,
    )  # fmt: skip
    block, allocation = render_block(full, (), "block"), render_allocation(full, ("true",))
    for line in (
        "--account=a1", "--partition=p", "--qos=q", "--constraint=[a|b]&c*2", "--reservation=r",
        "--network=disable_rdzv_get",
        "--mem=0", "--gres=gpu:4", "--exclude=n3", "--comment=id:7",
        "--gpus-per-node=8", "--cpus-per-task=7", "--exclusive", "--switches=1",
    ):  # fmt: skip
        assert f"#SBATCH {line}" in options(block)
        assert f"#SBATCH {line}" in options(allocation)
    assert "#SBATCH --signal=B:USR1@60" in options(allocation)
    assert "--signal" not in block  # the warning would end a script that doesn't expect it


@pytest.mark.parametrize(
    "value",
    ["a b", "a\n#SBATCH --account=other", "a\tb", "a --account=other", "a'b", 'a"b', "a\\b",
     "a#b", "a\rb", "a$b", "a`b", "\u00fc", "a;b", "%j", "a\0b", "a\u2028b", " ", "a\x0bb"],
)  # fmt: skip
@pytest.mark.parametrize("option", ["name", "account", "output", "constraint", "comment"])
def test_values_that_sbatch_would_read_otherwise_are_refused_by_name(
    option: str, value: str
) -> None:
    with pytest.raises(UserError, match=f"^{option}: "):
        render_block(replace(JOB, **{option: value}), (STEP,), "block")  # type: ignore[arg-type]  # text


def test_a_job_needs_a_name_nodes_and_a_time() -> None:
    for wrong in (
        {"name": ""},
        {"nodes": 0},
        {"time_s": 0},
        {"time_s": float("inf")},
        {"time_s": float("nan")},
    ):
        with pytest.raises(UserError):
            render_block(replace(JOB, **wrong), (), "block")


@pytest.mark.parametrize(
    ("seconds", "limit"),
    [(1, "0-00:01:00"), (60, "0-00:01:00"), (61, "0-00:02:00"), (86400, "1-00:00:00"),
     (90061.5, "1-01:02:00")],
)  # fmt: skip
def test_time_limits_are_whole_minutes_and_never_less(seconds: float, limit: str) -> None:
    assert f"#SBATCH --time={limit}" in options(
        render_block(replace(JOB, time_s=seconds), (), "block")
    )


def test_a_folder_of_ones_own_comes_first(tmp_path: Path) -> None:
    (tmp_path / "base.sh.j2").write_text(
        '{% extends "commtune/base.sh.j2" %}\n'
        "{% block modules %}\nmodule load {{ job.name }}\n{% endblock %}\n"
    )
    script = render_block(JOB, (STEP,), "block", tmp_path)
    assert "module load 'plain'\n" in script
    assert "'9' 'srun' program" in script
    assert options(script) == options(render_block(JOB, (STEP,), "block"))


def test_a_block_of_ones_own_can_hold_the_one_that_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "base.sh.j2").write_text(
        '{% extends "commtune/base.sh.j2" %}\n'
        "{% block environment %}\n{{ super() }}echo {{ super()|trim }}\n{% endblock %}\n"
    )
    job = replace(JOB, environment={"A": "it's $(touch RAN)"})
    script = render_block(job, (), "block", tmp_path)
    line = "export A='it'\\''s $(touch RAN)'"
    assert f"\n{line}\necho '" in script
    said = subprocess.run(
        ["bash", "-c", script.split("export SLURM_EXPORT_ENV")[1].split("\n", 1)[1]],
        cwd=tmp_path, check=True, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert said.stdout == line + "\n"  # changed by a filter it is a value again


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('echo "{{ job.name }}"', "inside double quotes"),
        ("echo '{{ job.name }}'", "inside single quotes"),
        ("echo `echo {{ job.name }}`", "inside backticks"),
        ("echo $'a\\'b {{ job.name }}'", "inside single quotes"),
        ('echo "$(echo "{{ job.name }}")"', "inside double quotes"),
        ('echo "${x:-"{{ job.name }}"}"', "inside double quotes"),
        ('echo "`echo "{{ job.name }}"`"', "inside double quotes"),
        ("# {{ job.name }}", "in a comment"),
        ("true # {{ job.name }}", "in a comment"),
        ("cat <<EOF\n{{ job.name }}\nEOF", "in a here-document"),
        ("cat <<-'EOF'\n\t{{ job.name }}\n\tEOF", "in a here-document"),
        ("echo $(( {{ job.nodes }} + 1 ))", "in arithmetic"),
        ("echo \\{{ job.name }}", "after a backslash"),
        ("echo ${{ job.name }}", "after a backslash or $"),
        ("#SBATCH --account={{ job.account }}", "without its filter"),
        ("#SBATCH --account={{ job.account|directive ~ 'x' }}", "without its filter"),
        ("echo {{ job.name|directive }}", "has a filter for #SBATCH or #PBS lines"),
        ("echo {{ 'x' ~ (job.name|directive) }}", "has a filter for #SBATCH or #PBS lines"),
        ("{% filter replace(\"'\", '') %}{{ job.name }}{% endfilter %}", "filter section"),
        ("echo \"{% include 'block.sh.j2' %}\"", "inside double quotes"),
        ('{% block b %}echo "{{ super() }}"{% endblock %}', "inside double quotes"),
        ("{{ job.nmae }}", "no attribute 'nmae'"),
        ("{{ job.name|code }}", "values are never run"),
        ("{{ job.environment }}", "mappingproxy|dict stands"),
        ("{{ job.exclusive }}", "a bool stands"),
        ("{{ missing }}", "'missing' is undefined"),
        ("{% if %}", "Expected an expression"),
        ("{% extends 'no.j2' %}", "no template is called 'no.j2'"),
        ("echo \u00fc", "text beyond ASCII"),
    ],
)
def test_mistakes_in_templates_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "block.sh.j2").write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    with pytest.raises(UserError, match=message.replace("$", r"\$")):
        render_block(JOB, (STEP,), "block", tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "{{ job.name }}", "x={{ job.name }}", "echo a{{ job.name }}b", "{{ job.name|upper }}",
        "{{ job.name|e }}", "{{ job.name|safe }}", "{{ [job.name]|join(' ') }}",
        "{% autoescape true %}{{ job.name }}{% endautoescape %}",
        "{% macro m(x) %}{{ x }}{% endmacro %}echo {{ m(job.name) }}",
        "{% set x %}{{ job.name }}{% endset %}echo {{ x }}",
        "echo \"in quotes\" {{ job.name }} 'again' \\\" {{ job.name }}",
        "echo $(echo {{ job.name }})", "cat <<EOF\ntext\nEOF\necho {{ job.name }}",
        "echo \"${x}\" {{ job.name }}",
        "echo \"$(echo \"x\")\"\necho {{ job.name }}", "# it's a comment\necho {{ job.name }}",
        "echo a#b {{ job.name }}",
    ],
)  # fmt: skip
def test_nothing_that_a_template_does_runs_a_value(tmp_path: Path, text: str) -> None:
    # An option of a job can't hold this; a variable can.
    value = "'; touch RAN; $(touch RAN) `touch RAN`\ntouch RAN\n&lt;"
    source = text.replace("job.name", "steps[0].environment.A")
    (tmp_path / "block.sh.j2").write_text(f"#!/bin/bash\n{source}\n\ntrue\n", encoding="utf-8")
    step = Step(("true",), "out", "exit", {"A": value}, time_limit_s=9)
    script = render_block(JOB, (step,), "block", tmp_path)
    subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S
    )
    assert [p.name for p in tmp_path.iterdir()] == ["block.sh.j2"]


def test_a_missing_folder_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no folder of templates"):
        render_block(JOB, (STEP,), "block", tmp_path / "no")


CONTROLLER = """
import os, signal, sys, time
def warned(*_):
    os.write(1, b"warned\\n")  # it may come in the middle of a print
    time.sleep(0.2)
    sys.exit(7)
signal.signal(signal.SIGUSR1, warned)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(8))
print("ready", os.environ.get("A"), flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(9)
"""


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (mask,) = [line.split()[1] for line in lines if line.startswith("SigCgt:")]
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_controller_is_never_a_word_of_the_shell(tmp_path: Path) -> None:
    script = render_allocation(JOB, ("eval", "touch RAN"))
    ended = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, timeout=PATIENCE_S
    )
    assert ended.returncode == 127
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("sent", "seconds", "code"), [(signal.SIGUSR1, 600, 7), (signal.SIGTERM, 600, 8), (None, 0, 9)]
)
def test_the_controller_gets_signals_and_its_status_is_the_jobs(
    tmp_path: Path, sent: signal.Signals | None, seconds: float, code: int
) -> None:
    job = replace(JOB, environment={"A": "1"}, after=ShellCode("echo afterwards"))
    words = ("python3", "-c", CONTROLLER, str(seconds))
    (tmp_path / "job.sh").write_text(render_allocation(job, words), encoding="ascii")
    started = subprocess.Popen(
        ["bash", tmp_path / "job.sh"], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert started.stdout
    assert started.stdout.readline() == "ready 1\n"
    if sent is not None:
        # The controller may be ready before bash is.
        wait_for(lambda: catches(started.pid, sent), "bash")
        started.send_signal(sent)
    # What readline has buffered, communicate would lose.
    with started.stdout:
        said = started.stdout.read()
    assert started.wait(timeout=PATIENCE_S) == code
    assert said.endswith("afterwards\n")
    assert ("warned" in said) == (sent is signal.SIGUSR1)


def test_a_colon_in_a_path_is_refused_where_qsub_would_take_it_for_a_machine() -> None:
    wish = JobRequest(scheduler=JobScheduler.PBS)
    with pytest.raises(UserError, match="can't print to /home/me/a:b/job"):
        job_for(None, wish, name="x", time_s=60, output="/home/me/a:b/job.out")
