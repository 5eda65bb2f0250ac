"""The drawing of the house shows every room once, above those that it imports, and is the one in the documents."""

from __future__ import annotations

from tests.rules.rooms import floors
from tools import house


def test_every_room_has_a_description() -> None:
    drawn = [room for rooms in (house.PLUGINS, *floors()) for room in rooms]
    assert sorted(drawn) == sorted(house.WORDS), "give the room its words in tools/house.py"


def test_the_document_shows_the_current_drawing() -> None:
    assert house.DRAWING.read_text() == house.drawing(), "run python -m tools.house"
