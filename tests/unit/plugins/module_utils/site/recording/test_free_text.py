# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Free text of a recording loses each word that is not known to be harmless, also one that no field names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.replay.server import accept, replayed
from plugins.module_utils.site.recording import anonymization, archive
from plugins.module_utils.site.recording.harmless_words import WORDS
from plugins.module_utils.site.recording.pseudonyms import Pseudonyms
from plugins.module_utils.site.recording.recording import EsxcliCommand, RecordedObject, Recording, RestRequest
from plugins.module_utils.vsphere.sdk import vim

SITES = sorted((Path(__file__).parents[5] / "fixtures" / "sites").glob("*.tar.xz"))
KEPT = (
    "Virtual machine guest-1 was powered off because the host host-2.domain-1.example is not responding",
    "Migrating from 198.18.0.1 to 198.18.0.2 failed: insufficient resources (error 195887107)",
    "ESXi 8.0.3 build-24022510, NVIDIA driver 550.90.05, 40GB of memory, 25 GbE, 0x1f, T4 and A100",
    "The device 0000:3b:00.0 of vmnic0 has the address 00:50:56:00:00:1f since 2026-07-03T14:59:17.123Z",
    "Key 00000000-0000-4000-8000-00000000000b, 2001:db8::1f, XXXXX-XXXXX-XXXXX-XXXXX-00001",
    "poweredOn VirtualMachine vim.fault.InsufficientResourcesFault sharedDirect couldn't",
    "/vmfs/volumes/datastore-1/file-1/file-1.vmx",
)
SECRETS = (
    ("Snapshot before the Feldspar audit", ["feldspar"]),
    ("Renamed from payroll-db-old to guest-1", ["payroll"]),
    ("Call Wilhelmina Obermeier or Mr. O'Basalt in case of an error", ["wilhelmina", "obermeier", "basalt"]),
    ("File /home/wobermeier/secret-plans.txt not found", ["wobermeier", "plans"]),
    ("Cannot read https://vault.acme.org:8200/v1/anvil?token=tq9xk", ["vault", "acme", "anvil", "tq9xk"]),
    ("udp://syslog-collector.acme.org:514", ["acme"]),
    ("Login of ACME\\wobermeier failed", ["acme", "wobermeier"]),
    ("mail w.obermeier@acme.org", ["obermeier", "acme"]),
    ("The host granite07.acme.org did not answer", ["granite", "acme"]),
    ("Copied feldspar_q3-000001.vmdk to the datastore", ["feldspar"]),
    ("Verbunden mit Müllabfuhr-Köln durch José Núñez", ["müll", "köln", "josé", "núñez", "verbunden"]),
    ("Connected to 東京データ and Ελευσίνα", ["東京", "データ", "ελευσίνα"]),
    ("Host ｇｒａｎｉｔｅ and Jose\u0301 are down", ["ｇｒａｎｉｔｅ", "jose"]),
    ("Rack\u200bFeldspar, row\u00a0Basalt", ["feldspar", "basalt"]),
    ("Ticket CHG0042317, serial XJ7K2PQ, card 4929123456789012", ["chg", "0042317", "xj7k2pq", "4929123456789012"]),
    ("Call +49 (151) 2345-678 in an emergency", ["151", "2345", "678"]),
    ("granitePoweredOn and HostOfWilhelmina", ["granite", "wilhelmina"]),
    ("Reported by Mark Grant, Rose and Will from Phoenix", ["mark", "grant", "rose", "will ", "phoenix"]),
)


@pytest.mark.parametrize("text", KEPT)
def test_words_of_vsphere_numbers_and_pseudonyms_stay(text: str) -> None:
    pseudonyms = Pseudonyms()
    words = re.sub(r"198\.18\.\d+\.\d+|[\da-f:-]{14,}|2001\S+|[\dX-]{20,}", "", text)
    for word in words.split():
        assert word in pseudonyms.said(text), word
    assert "word" not in pseudonyms.counted()


@pytest.mark.parametrize(("text", "words"), SECRETS)
def test_words_that_may_be_names_do_not_stay(text: str, words: list[str]) -> None:
    pseudonyms = Pseudonyms()
    found = pseudonyms.said(text)
    assert not [word for word in words if word in found.lower()], found
    assert pseudonyms.counted()["word"] >= 1
    assert pseudonyms.said(found) == found


def test_a_word_has_one_pseudonym_and_a_registered_name_keeps_its_own() -> None:
    pseudonyms = Pseudonyms()
    pseudonyms.name("guest", "granite")
    result = pseudonyms.said("Granite moved for Feldspar, then feldspar moved for basalt")
    assert result == "guest-1 moved for word-1, then word-1 moved for word-2"
    assert pseudonyms.said("feldspar") == "feldspar", "one word alone is a value of the API"
    assert pseudonyms.said("feldspar", is_sentence=True) == "word-1"
    assert pseudonyms.counted() == {"guest": 1, "word": 2}


@given(st.text())
def test_keeps_only_known_words_and_numbers_of_a_text(text: str) -> None:
    found = Pseudonyms().said(f"{text} of")
    for word in re.findall(r"[^\W\d_]{2,}", found):
        pieces = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", word)
        assert word.lower() in WORDS or all(piece.lower() in WORDS for piece in pieces), found


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_a_recorded_site_is_read_alike_without_unknown_words(path: Path, tmp_path: Path) -> None:
    pseudonyms = Pseudonyms()
    with replayed(path) as session:
        before = [(row["reader"], row["status"]) for row in accept(session).rows]
        recording = archive.read(path, session.stub)
        anonymization.replace_names(recording, pseudonyms)
        files = archive.files_of(recording)
    manifest = archive.manifest_of(recording, files, pseudonyms.counted())
    (tmp_path / "again.tar.xz").write_bytes(archive.archive_bytes(files, manifest))
    with replayed(tmp_path / "again.tar.xz") as session:
        assert [(row["reader"], row["status"]) for row in accept(session).rows] == before
    assert pseudonyms.counted().get("word", 0) <= 1, sorted(pseudonyms._words)


def anonymized(kind: str, path: str, value: Any) -> Any:
    recording = Recording(objects={"one": RecordedObject(kind, {"name": "granite", path: value})})
    anonymization.replace_names(recording, Pseudonyms())
    return recording.objects["one"].values[path]


def test_texts_of_events_tasks_faults_and_options() -> None:
    event = vim.event.VmMigratedEvent(fullFormattedMessage="granite moved to basalt by ACME\\wobermeier")
    assert (
        anonymized("VirtualMachine", "events", event).fullFormattedMessage
        == "guest-1 moved to word-1 by word-2\\word-3"
    )
    fault = vim.fault.NotFound(msg="Obermeier")
    error = vim.TaskInfo(key="task-1", error=fault, reason=vim.TaskReasonUser(userName="eve"))
    assert anonymized("Task", "info", error).error.msg == "word-1"
    option = vim.option.OptionValue(key="Syslog.global.logHost", value="udp://log.acme.org:514")
    assert anonymized("HostSystem", "config.option", [option])[0].value == "udp://log.word-1.org:514"
    gpu = vim.host.GraphicsInfo(deviceName="NVIDIA A100-PCIE-40GB", vendorName="NVIDIA Corporation")
    assert anonymized("HostSystem", "config.graphicsInfo", [gpu])[0].deviceName == "NVIDIA A100-PCIE-40GB"


def test_notes_of_the_collection_stay_readable() -> None:
    note = {"name": "granite", "said": "moved \u00e9t\u00e9 for Feldspar", "moves": [1, 2.5], "ok": True}
    value = vim.CustomFieldsManager.StringValue(key=1, value=json.dumps(note))
    (found,) = anonymized("VirtualMachine", "customValue", [value])
    assert json.loads(found.value) == {**note, "name": "guest-1", "said": "moved word-1 for word-2"}


def test_texts_of_commands_requests_and_calls() -> None:
    call = 'HostSystem h Query [{"text": "by Wilhelmina \\"W\\" Feldspar"}, "/vmfs/volumes/basalt"]'
    recording = Recording(
        commands=[
            EsxcliCommand(
                "h",
                "network nic list",
                {"nicname": "<nicname>vmnic2</nicname>"},
                "<obj><N>Uplink of Feldspar</N><M>up</M></obj>",
            ),
            EsxcliCommand("h", "system x get", {}, None, "No such device: Feldspar", "<d>at Obermeier's desk</d>"),
        ],
        requests=[RestRequest("GET", "/api/x", None, 404, '{"messages": ["Not found: Obermeier"], "version": "a b"}')],
    )
    anonymization.replace_names(recording, Pseudonyms())
    first, second = recording.commands
    assert first.arguments == {"nicname": "<nicname>vmnic2</nicname>"}
    assert first.response == "<obj><N>Uplink of word-1</N><M>up</M></obj>"
    assert (second.fault, second.detail) == ("No such device: word-1", "<d>at word-2's word-3</d>")
    assert recording.requests[0].text == '{"messages": ["Not found: word-2"], "version": "a b"}'
    reported = Pseudonyms().said
    assert anonymization._call(call, reported) == (
        'HostSystem h Query [{"text": "by word-1 \\"W\\" word-2"}, "/vmfs/volumes/word-3"]'
    )
