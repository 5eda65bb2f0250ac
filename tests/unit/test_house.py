# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The drawing of the house shows every room once, above those that it imports, and is the one in the documents."""

from __future__ import annotations

from tests.rooms import MAY_IMPORT
from tools import house


def test_every_room_has_its_place_and_its_words() -> None:
    drawn = [room for rooms in house.FLOORS.values() for room in rooms]
    assert sorted(drawn) == sorted(MAY_IMPORT) == sorted(house.WORDS), "give the room a place in tools/house.py"


def test_no_room_imports_one_on_a_floor_above() -> None:
    floor_of = {room: number for number, rooms in enumerate(house.FLOORS.values()) for room in rooms}
    upwards = [
        f"{room} -> {other}" for room in MAY_IMPORT for other in MAY_IMPORT[room] if floor_of[other] < floor_of[room]
    ]
    assert upwards == []


def test_the_document_shows_the_drawing_of_today() -> None:
    assert house.DRAWING.read_text() == house.drawing(), "run python tools/house.py"
