"""Errors of several objects: one sentence for each reason, with one advice."""

from __future__ import annotations

from plugins.module_utils.errors import Failed, SeveralErrors, Unreachable, WholeError, summary


def test_joins_hosts_that_failed_for_the_same_reason() -> None:
    lost = [Unreachable(f"esx{n}", "write its note", "the session expired", "run again") for n in (1, 2)]
    full = Failed("esx3", "write its note", "it is full", "make room")
    message = (
        "esx1, esx2: could not write its note: the session expired; run again | "
        "esx3: could not write its note: it is full; make room; completed changes are kept"
    )
    error = SeveralErrors([*lost, full], "completed changes are kept")
    assert summary([error]) == str(error) == message
    assert (
        summary([Failed("cpu", "change it", "it is off"), error]) == f"{message} | cpu: could not change it: it is off"
    )
    assert error.about("gpu") is error


def test_removes_control_characters_from_text_of_nodes() -> None:
    forged = "\x1b[2Jmodel\nok: [w1]\r\x9b31m"

    assert str(Failed("w1", f"copy {forged}", forged)) == (
        "w1: could not copy ?[2Jmodel ok: [w1] ?31m: ?[2Jmodel ok: [w1] ?31m"
    )
    assert str(WholeError(f"first\n{forged}")) == "first\n?[2Jmodel\nok: [w1] ?31m"


def test_complete_sentence_stays_as_it_is() -> None:
    complete = WholeError("The training run one has no end in its manifest.")

    assert summary([complete, Failed("cpu", "change it", "it is off"), complete]) == (
        "The training run one has no end in its manifest. | cpu: could not change it: it is off"
    )
