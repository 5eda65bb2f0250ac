"""The reason why a task failed, from its result: its message often lacks the output of the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.json_values import JsonObject

LONGEST = 1200  # characters from the end of a program's output, where the reason is
EMPTY = {"", "non-zero return code", "All items completed", "One or more items failed"}
# ansible-core since 2.21.
EMPTY.add("The command exited with a non-zero return code")
# The module returned no JSON, in the words of older and of newer releases of Ansible.
UNREAD = ("MODULE FAILURE", "Module result deserialization failed")
STREAMS = ("stderr", "module_stderr", "stdout", "module_stdout")


def message_of(result: JsonObject) -> str:
    """Return the message of a failed task, or its program and the end of the output; for a loop, those of each item."""
    results = [item for item in _items(result.get("results")) if isinstance(item, Mapping)]
    items = [message_of(item) for item in results if item.get("failed") or item.get("unreachable")]
    if items:
        return " ".join(dict.fromkeys(items))
    message = str(result.get("msg") or "").strip()
    output = output_of(result)
    if message.rstrip(".") in EMPTY or message.startswith(UNREAD):
        message = _program(result)
    if output and output not in message:
        return f"{message.rstrip('.:')}: {_end(output)}"
    return message


def output_of(result: JsonObject) -> str:
    """Return the output of the program or module that failed, of its errors if it wrote some."""
    return next((text for stream in STREAMS if (text := str(result.get(stream) or "").strip())), "")


def _items(results: object) -> Sequence[object]:
    """Return the results of a loop; a module may use the same key for something else."""
    return results if isinstance(results, (list, tuple)) else ()


def _program(result: JsonObject) -> str:
    """Return the program that failed and its exit code."""
    command = result.get("cmd")
    if not command:
        return "The task failed without a message"
    # The first word of a shell command may not be a program.
    name = str(command[0]).rsplit("/", 1)[-1] if isinstance(command, list) else "The command"
    return f"{name} ended with {result.get('rc', 'an error')}"


def _end(text: str) -> str:
    return text if len(text) <= LONGEST else f"... {text[-LONGEST:]}"
