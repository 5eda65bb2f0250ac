"""Any text of any ranks, in any pieces, with each tag that a launcher prints: every step has the right rank.

The oracle is the launcher: it prints a tag before each piece that it reads from a rank, and after each line end within
a piece.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.training.output.log import LogReader, parse
from plugins.module_utils.watch.mpi_output import lines_of

# Open MPI 4: https://github.com/open-mpi/ompi/issues/7710, Open MPI 5: https://github.com/openpmix/openpmix/pull/2669
# and https://github.com/openpmix/prrte/issues/1405, horovodrun: https://github.com/horovod/horovod/pull/3827.
TAGS = [
    "[1,{}]<stdout>:",
    "[27001,{}]<stderr>:",
    "Thu May  7 10:39:20 2020[1,{}]<stdout>:",
    "[prterun-f5n18-100629@1,{}]<stdout>: ",
    "[1,{}][f5n18:100629]<stdout>:",
    "[prterun-f5n18-100629@1,{}][unknown:unknown]<stdout>: ",
    "[prun.multihost-rb9dp-runner-k2kjg.192,{}]<stdout>: ",
]
GLOO = ["[{}]<stdout>:", "Mon Oct 19 20:44:09 2020[{}]<stderr>:"]
NASTY = [
    "layer[3]", "x[1,2]", "[0]", "[7][n2:12]", "[n2:12]", "\x1b[31mred\x1b[0m", "\x1b[1", "9" * 5000, "Thu May  7 ",
    '{"rank": 0', "\u2028", "\x85\x0b\x1c", "[5]<stdout>", "[2,", "10\t", "\r 50%|#####     |\r", "\x1b]0;title\x07",
]  # fmt: skip
NOISE = st.lists(st.sampled_from(NASTY) | st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])))
COLOURS = ["", "\x1b[31m", "\x1b[0m", "\x1b[1;38;5;208m", "\x1b[K"]


def is_harmless(text: str) -> bool:
    """Return whether the text contains neither a record nor a complete tag: similar text may be reported as a fault."""
    return (
        "sec" not in text
        and '"' not in text.replace('{"rank": 0', "")
        and "<std" not in text.replace("[5]<stdout>", "")
    )


def step_text(kind: str, step: int, colours: list[str]) -> str:
    first, second = colours
    if kind == "json":
        return json.dumps({"step": step, "t": 1.5}).replace(": 1.5", f": {first}1.5{second}")
    if kind == "huge":
        return f'{{"step": {step}, "seed": {"7" * 5000}}}'
    return f"{step}\timages/sec: {first}3.1{second} +/- 0.2 (jitter = 0.6)\t{first}81.121{second}"


STEPS = st.builds(
    lambda *drawn: (drawn[1], step_text(*drawn)),
    st.sampled_from(["json", "tf_cnn", "huge"]),
    st.integers(0, 9999),
    st.lists(st.sampled_from(COLOURS), min_size=2, max_size=2),
)
LINES = STEPS | NOISE.map("".join).filter(is_harmless).map(lambda text: (None, text))
RANKS = st.lists(st.lists(LINES, max_size=5), min_size=1, max_size=4)


def pieces(text: str, random: Any) -> list[str]:
    edges = sorted({0, len(text), *(random.randrange(len(text) + 1) for _lap in range(random.randrange(6)))})
    return [text[begin:end] for begin, end in pairwise(edges)]


def launched(ranks: list[list[tuple[int | None, str]]], tag: str, random: Any) -> str:
    """Return the output of the launcher."""
    left = [pieces("".join(f"{line}\n" for _step, line in lines), random) for lines in ranks]
    printed = ""
    while any(left):
        rank = random.choice([rank for rank, some in enumerate(left) if some])
        for part in _parts(left[rank].pop(0)):
            printed += tag.format(rank) + part
    return printed


def _parts(piece: str) -> list[str]:
    """Return a piece, split after each of its line ends."""
    return re.findall(r"[^\n]*\n|[^\n]+", piece)


@settings(max_examples=300)
@given(st.sampled_from([*TAGS, *GLOO]), RANKS, st.randoms(use_true_random=False))
def test_assigns_each_step_to_its_rank(tag: str, ranks: list[list[tuple[int | None, str]]], random: Any) -> None:
    if tag in GLOO:
        ranks = [[(step, line.replace("[5]<stdout>", "")) for step, line in lines] for lines in ranks]
    log = parse(launched(ranks, tag, random))
    for rank, lines in enumerate(ranks):
        assert [one.step for one in log.steps if one.rank == rank] == [
            step for step, _text in lines if step is not None
        ]
    assert {one.rank for one in log.steps} <= set(range(len(ranks)))


@settings(max_examples=300)
@given(st.sampled_from([*TAGS, *GLOO]), RANKS, st.randoms(use_true_random=False))
def test_joins_lines_as_each_rank_wrote_them(tag: str, ranks: list[list[tuple[int | None, str]]], random: Any) -> None:
    if tag in GLOO:
        ranks = [[(step, line.replace("[5]<stdout>", "")) for step, line in lines] for lines in ranks]
    plain = [[(step, line.replace("\x1b", "")) for step, line in lines] for lines in ranks]
    lines = lines_of(launched(plain, tag, random))
    for rank, wrote in enumerate(plain):
        assert [line.text.strip() for line in lines if line.rank == rank] == [
            text.strip() for _step, text in wrote if text.strip()
        ]


@given(st.text(st.characters(exclude_categories=["Cs"])) | NOISE.map("".join), st.integers(1, 50))
def test_parses_any_text_alike_in_any_pieces(text: str, size: int) -> None:
    reader = LogReader()
    records = [one for at in range(0, len(text), size) for one in reader.feed(text[at : at + size])] + reader.close()
    whole = parse(text)
    assert repr([one for one in records if "mark" not in one]) == repr(whole.steps)
    assert reader.problems == whole.problems
    lines_of(text)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"rank": 0, "step": %s}' % ("7" * 5000), "has step=inf"),
        ('{"rank": %s, "step": 1}' % ("7" * 400), "not a whole number"),
        ("%s\timages/sec: 3.1 +/- 0.2 (jitter = 0.6)\t81.121" % ("7" * 5000), "looks like a training step"),
        ("Iter #%s: 251.3 img/sec per GPU" % ("7" * 5000), "looks like a training step"),
        ("[1,%s]<stdout>:Iter #1: 251.3 img/sec per GPU\n" % ("7" * 5000), ""),
    ],
    ids=["step", "rank", "tf_cnn", "horovod", "tag"],
)
def test_an_overlong_number_loses_only_its_line(line: str, message: str) -> None:
    log = parse(f"Iter #1: 1.0 img/sec per GPU\n{line}\nIter #9: 251.3 img/sec per GPU\n")
    assert log.steps[0].step == 1 and log.steps[-1].step == 9
    assert not message or any(message in one.detail for one in log.problems)


@pytest.mark.parametrize("number", ["7" * 400, "1e400", "7" * 5000])
def test_a_rate_or_loss_beyond_floats_is_infinite(number: str) -> None:
    log = parse(f'{{"rank": 0, "step": 1, "loss": {number}, "images_per_sec": -{number}}}\n')
    assert [(one.loss, one.images_per_sec) for one in log.steps] == [(float("inf"), float("-inf"))]
