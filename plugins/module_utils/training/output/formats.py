"""The formats of training output in one line of text, recognised without state from other lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Dict

from ...watch.mpi_output import plain

_ANY = r"-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf)"
# The benchmarks print a fixed number of decimals: without a line end, the decimals show that a number is complete.
_ONE, _TWO, _THREE = (rf"-?(?:\d+\.\d{{{count}}}|nan|inf)" for count in (1, 2, 3))
_END = r"(?=\s|$)"


def _tf_cnn_step(rate: str, loss: str) -> re.Pattern[str]:
    spread = rf"(?: \+/- {rate} \(jitter = {rate}\))?"
    return re.compile(
        rf"(?<![\d.])(?P<step>\d{{1,15}})\s+images/sec: (?P<rate>{rate}){spread}\s+(?P<loss>{loss}){_END}"
    )


_TF_CNN_STEP, _TF_CNN_STEP_CUT = _tf_cnn_step(_ANY, _ANY), _tf_cnn_step(_ONE, _THREE)
_TF_CNN_TOTAL, _TF_CNN_TOTAL_CUT = (
    re.compile(rf"total images/sec: (?P<total>{number}){_END}") for number in (_ANY, _TWO)
)
_HOROVOD_STEP = re.compile(rf"Iter #(?P<step>\d{{1,15}}): (?P<rate>{_ANY}) img/sec per \S+")
_HOROVOD_TOTAL, _HOROVOD_TOTAL_CUT = (
    re.compile(rf"Total img/sec on \d+ \S+: (?P<total>{number}) \+-\s?{number}{_END}") for number in (_ANY, _ONE)
)
_HEADING = re.compile(r"Step\s+Img/sec\s+\w+|Img/sec per \S+ " + rf"{_ANY} \+-\s?{_ANY}")
_ENDED = (_TF_CNN_STEP, _TF_CNN_TOTAL, _HOROVOD_STEP, _HOROVOD_TOTAL, _HEADING)
_CUT = (_TF_CNN_STEP_CUT, _TF_CNN_TOTAL_CUT, _HOROVOD_STEP, _HOROVOD_TOTAL_CUT, _HEADING)
_RATE_WORD = re.compile(r"\b(?:images|img)/sec", re.IGNORECASE)
_BEGINNING = re.compile(r"\s*(?:\d+\t(?:i.*)?|\{\s*(?:\".*)?|Iter #.*|[Tt]otal i.*|Img/s.*)", re.DOTALL)

# Larger ranks and steps are invalid: a float cannot represent them.
HIGHEST = 1 << 53
decode_json = json.JSONDecoder().raw_decode


def _number(digits: str) -> int | float:
    """Return a whole number; infinite if it has more digits than Python converts."""
    return int(digits) if len(digits) < 400 else float(digits)


_decode_any_json = json.JSONDecoder(parse_int=_number).raw_decode


class Record(Dict[str, Any]):
    """One training step as a dict with the keys of a step record, and with its four main values as attributes."""

    @property
    def rank(self) -> int:
        """Return the MPI rank that made the step."""
        return int(self["rank"])

    @property
    def step(self) -> int:
        return int(self["step"])

    @property
    def images_per_sec(self) -> float | None:
        """Return the rate in the record; None if it has none."""
        rate: float | None = self["images_per_sec"]
        return rate

    @property
    def loss(self) -> float | None:
        """Return the loss, which may be NaN or infinite; None if the record has none."""
        loss: float | None = self["loss"]
        return loss


@dataclass
class LineContent:
    """The content of one text: step records, phase marks, a total rate, and the faults of malformed parts."""

    records: list[Record] = field(default_factory=list)
    marks: list[Record] = field(default_factory=list)
    total: float | None = None
    faults: list[str] = field(default_factory=list)

    @property
    def has_output(self) -> bool:
        """Return whether the text contains training output."""
        return bool(self.records or self.marks or self.total is not None)

    @property
    def is_clean(self) -> bool:
        """Return whether the text contains training output and no malformed part."""
        return self.has_output and not self.faults


def recognise(text: str, rank: int | None, ended: bool = True) -> LineContent:
    """Return the training output in one line; ``ended`` is false if the text ends before the end of the line."""
    content = LineContent()
    text = plain(text)
    if '"' in text and "{" in text:
        _find_json(text, rank, content)
    if "/sec" in text:
        _find_benchmark(text, 0 if rank is None else rank, ended, content)
    if not ended and not content.has_output and not content.faults and _BEGINNING.fullmatch(text):
        content.faults.append("is cut off")
    return content


def step_fault(record: dict[str, object]) -> str | None:
    """Add the keys and number types that readers require to a step record; return its fault, or None."""
    # pylint: disable=unidiomatic-typecheck # True and False are not whole numbers here
    for key in ("rank", "step"):
        value = record.get(key)
        if type(value) is not int or not 0 <= value <= HIGHEST:
            return f"has {key}={value!r}, not a whole number of 0 or more" if key in record else f"has no {key}"
    for key in ("images_per_sec", "loss"):
        record[key] = value = _as_number(record.get(key))
        if value is not None and type(value) not in (int, float):
            return f"has {key}={value!r}, not a number"
    for key in ("job", "pid", "start"):
        if isinstance(record.get(key), (dict, list)):
            return f"has {key}={record[key]!r}, not one plain value"
    return None


def _as_number(value: object) -> object:
    """Return the value; text and integers that are too large for sums become a float."""
    is_spelled = isinstance(value, str) and value.lower() in ("nan", "inf", "-inf")
    is_great = isinstance(value, int) and abs(value) > HIGHEST
    return float(str(value)) if is_spelled or is_great else value


def _find_json(text: str, rank: int | None, content: LineContent) -> None:
    torn = False
    for value in _json_objects(text):
        if value is None:
            torn = True
        elif "step" in value:
            if rank is not None:
                value.setdefault("rank", rank)
            record = Record(value)
            fault = step_fault(record)
            if fault:
                content.faults.append(fault)
            else:
                (content.marks if "mark" in record else content.records).append(record)
    if torn and ('"step"' in text or text.lstrip().startswith('{"')):
        content.faults.append("contains a torn JSON record")


def _json_objects(text: str) -> Iterator[dict[str, object] | None]:
    position = text.find("{")
    while position >= 0:
        try:
            value, end = _decode_any_json(text, position)
        except RecursionError:
            yield None
            return
        except ValueError:
            yield None
            end = position + 1
        else:
            yield value
        position = text.find("{", end)


def _find_benchmark(text: str, rank: int, ended: bool, content: LineContent) -> None:
    is_single = ended and len(_RATE_WORD.findall(text)) == 1
    rest = text
    for pattern in _ENDED if is_single else _CUT:
        for match in pattern.finditer(text):
            rest = rest.replace(match[0], " ", 1)
            _keep_benchmark(match.groupdict(), rank, content)
    if _RATE_WORD.search(rest):
        content.faults.append("looks like a training step but cannot be parsed" if ended else "is cut off")


def _keep_benchmark(fields: dict[str, str], rank: int, content: LineContent) -> None:
    if "total" in fields:
        content.total = float(fields["total"])
    elif "step" in fields:
        loss, rate = float(fields["loss"]) if "loss" in fields else None, float(fields["rate"])
        content.records.append(Record(rank=rank, step=int(fields["step"]), images_per_sec=rate, loss=loss))
