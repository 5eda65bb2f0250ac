"""Launchers in the command of a job: mpirun starts their ranks, or the command is refused."""

from __future__ import annotations

import re

import pytest

from plugins.module_utils.training.launch.mpirun import (
    LauncherError,
    LaunchError,
    is_launcher,
    job_of,
    rank_command,
    with_steps,
    words_of,
)

PYTHON, OURS = "/opt/dml/bin/python", "/lib/dml_torchrun.py"


@pytest.mark.parametrize(
    ("given", "command", "dropped"),
    [
        ("python train.py --nproc 2", "python train.py --nproc 2", ""),
        ("/opt/x/bin/python -u -m mine", "/opt/x/bin/python -u -m mine", ""),
        ("torchrun train.py --nnodes 3", f"{PYTHON} -u {OURS} train.py --nnodes 3", ""),
        (
            "/opt/x/bin/torchrun --nnodes=2 --nproc_per_node 4 --standalone train.py --lr 0.1",
            f"/opt/x/bin/python -u {OURS} train.py --lr 0.1",
            "--nnodes=2|--nproc_per_node 4|--standalone",
        ),
        (
            "python3 -m torch.distributed.run --rdzv-backend=c10d --rdzv-endpoint n1:29500 -m pkg.train --x",
            f"python3 -u {OURS} -m pkg.train --x",
            "--rdzv-backend=c10d|--rdzv-endpoint n1:29500",
        ),
        ("python -u -m torch.distributed.run train.py", f"python -u {OURS} train.py", ""),
        ("/x/python3 -mtorch.distributed.run train.py", f"/x/python3 -u {OURS} train.py", ""),
        ("/x/python -m accelerate.commands.launch train.py", f"/x/python -u {OURS} train.py", ""),
        ("accelerate-launch --cpu train.py", f"{PYTHON} -u {OURS} train.py", "--cpu"),
        ("python -u train.py -m torch.distributed.run", "python -u train.py -m torch.distributed.run", ""),
        ("env A=1 python train.py --with mpirun", "env A=1 python train.py --with mpirun", ""),
        ("torchrun --max-restarts=0 train.py", f"{PYTHON} -u {OURS} train.py", "--max-restarts=0"),
        (
            "accelerate launch --multi_gpu --num_processes 8 train.py",
            f"{PYTHON} -u {OURS} train.py",
            "--multi_gpu|--num_processes 8",
        ),
    ],
)
def test_translates_launcher_commands_into_one_command_per_rank(given: str, command: str, dropped: str) -> None:
    translated = rank_command(given.split(), PYTHON, OURS)
    assert (" ".join(translated.command), "|".join(translated.dropped)) == (command, dropped)
    assert is_launcher(given.split()) == (given != command)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            "torchrun --max-restarts=3 train.py",
            "gives torchrun --max-restarts=3: remove it, because ranks are not restarted",
        ),
        (
            "torchrun --max-restarts 3 train.py",
            "gives torchrun --max-restarts 3: remove it, because ranks are not restarted",
        ),
        ("torchrun --nproc-per-node 2", "gives torchrun no script"),
        ("torchrun --no-python train", "the option --no-python, which has no meaning under mpirun"),
        ("accelerate launch --use_deepspeed train.py", "gives accelerate launch the option --use_deepspeed"),
        ("accelerate launch --mixed_precision fp16 train.py", "the option --mixed_precision"),
        ("deepspeed train.py", "begins with deepspeed, which starts ranks by itself: specify the command of one rank"),
        ("/usr/bin/mpirun -np 2 python train.py", "begins with mpirun"),
        ("env NCCL_DEBUG=INFO torchrun train.py", "begins with env, which starts ranks by itself"),
        ("uv run torchrun train.py", "begins with uv"),
        ("nohup mpirun python train.py", "begins with nohup"),
        ("env A=1 python -m torch.distributed.run train.py", "begins with env"),
    ],
)
def test_refuses_an_untranslatable_option_by_name(given: str, words: str) -> None:
    with pytest.raises(LauncherError, match=words.replace("-", "[-]")):
        rank_command(given.split(), PYTHON, OURS)
    assert is_launcher(given.split())


@pytest.mark.parametrize("given", ["torchrun train.py", "python -m torch.distributed.run train.py", "horovodrun x"])
def test_refuses_a_launcher_where_a_command_is_expected(given: str) -> None:
    with pytest.raises(LaunchError, match=r"begins with the launcher .*: specify the command of one rank"):
        job_of(given.split(), [{"name": "n1"}], None)


def test_a_shell_that_starts_a_launcher_is_detected() -> None:
    assert is_launcher(["bash", "-c", "torchrun train.py"])
    assert not is_launcher(["bash", "-c", "python train.py"])


@pytest.mark.parametrize(
    "command", [["python", "train.py", "a b"], 'python train.py "a b"', '["python", "train.py", "a b"]']
)
def test_accepts_a_command_given_as_text(command: str | list[str]) -> None:
    assert words_of(command) == ["python", "train.py", "a b"]


@pytest.mark.parametrize("command", ['python "train.py', '["python"'])
def test_refuses_text_that_is_not_a_command(command: str) -> None:
    with pytest.raises(LauncherError, match=r"training_command is .*, which cannot be read: "):
        words_of(command)


@pytest.mark.parametrize(
    ("given", "command"),
    [
        ("python train.py --lr 1", "python STEPS train.py --lr 1"),
        ("/x/python3.11 -u -X dev -Wd -OO train.py", "/x/python3.11 -u -X dev -Wd -OO STEPS train.py"),
        ("python3 -u -m mine.train -c 2", "python3 -u STEPS -m mine.train -c 2"),
    ],
)
def test_runs_a_python_script_with_its_steps_recorded(given: str, command: str) -> None:
    assert with_steps(given.split(), "STEPS") == command.split()


@pytest.mark.parametrize(
    "given",
    [
        *("bash train.sh", "python", "python -u", "python -m", "python -", "python -c pass", "python -I train.py"),
        *("python2 train.py", "pythonw train.py", "python -u /lib/dml_torchrun.py train.py", ""),
        *("python dml_output.py a.py", "python /lib/dml_steps.py train.py"),
    ],
)
def test_a_command_without_a_python_script_is_unchanged(given: str) -> None:
    assert with_steps(given.split(), "STEPS") == given.split()


@pytest.mark.parametrize(
    "given",
    [
        "numactl --cpunodebind 0 --membind=0 torchrun --nproc-per-node 4 train.py",
        "conda run -n mine torchrun train.py",
        "conda run --no-capture-output -n mine python -m torch.distributed.run train.py",
        "poetry run torchrun train.py",
        "timeout 3600 accelerate launch train.py",
        "taskset -c 0-7 mpirun -np 4 python train.py",
        "OMP_NUM_THREADS=4 torchrun train.py",
    ],
)
def test_refuses_a_launcher_behind_another_program(given: str) -> None:
    with pytest.raises(LauncherError, match="which starts ranks by itself: specify the command of one rank"):
        rank_command(given.split(), "python3", "torchrun.py")


@pytest.mark.parametrize(
    "given",
    [
        "numactl --cpunodebind 0 python train.py --launcher torchrun",
        "conda run -n mine python train.py",
        "nohup bash run.sh torchrun",
        "./mine torchrun",
    ],
)
def test_a_program_without_a_launcher_is_unchanged(given: str) -> None:
    assert rank_command(given.split(), "python3", "torchrun.py").command == given.split()


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("python prepare.py && python train.py", "&&"),
        ("python prepare.py; python train.py", "prepare.py;"),
        ("python train.py | tee log.txt", "|"),
        ("python train.py > log.txt 2>&1", ">"),
        ("python train.py 2>errors.txt", "2>errors.txt"),
        ("python train.py &", "&"),
        ("python train.py --data $DATA/images", "$DATA"),
        ('python train.py --out "${SCRATCH}/out"', "${SCRATCH}"),
        ("python train.py --seed $(date +%s)", "$(date"),
        ("python train.py --seed `date +%s`", "`date"),
    ],
)
def test_text_that_only_a_shell_understands_is_refused(command: str, word: str) -> None:
    """No shell runs it: the first program would get the rest as its arguments, and the run would end as finished."""
    with pytest.raises(LauncherError, match=rf"training_command has {re.escape(word)}, which only a shell understands"):
        words_of(command)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("bash -c 'cd src && python train.py > log'", ["bash", "-c", "cd src && python train.py > log"]),
        ('bash -c "python a.py --data $DML_DATA | tee b"', ["bash", "-c", "python a.py --data $DML_DATA | tee b"]),
        (
            "python train.py --sep '|' --price '$X' --rule a>b",
            ["python", "train.py", "--sep", "|", "--price", "$X", "--rule", "a>b"],
        ),
        (
            r"python train.py --sep \; --url http://x/?a=1&b=2",
            ["python", "train.py", "--sep", ";", "--url", "http://x/?a=1&b=2"],
        ),
        ('python train.py --text "it is; so" --cost 5$', ["python", "train.py", "--text", "it is; so", "--cost", "5$"]),
        ("python train.py\n  --lr 0.1\n", ["python", "train.py", "--lr", "0.1"]),
        ('["python", "train.py", "&&", "$X"]', ["python", "train.py", "&&", "$X"]),
    ],
)
def test_accepts_quoted_text_and_lists_without_a_shell(command: str, words: list[str]) -> None:
    assert words_of(command) == words
