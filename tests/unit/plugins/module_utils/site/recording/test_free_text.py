"""Free text of a recording loses its words, also those that no field names, and keeps its structure."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.replay.server import accept, replayed
from plugins.module_utils.site.recording import anonymization, archive, free_text
from plugins.module_utils.site.recording.pseudonyms import Pseudonyms
from plugins.module_utils.site.recording.recording import EsxcliCommand, Recording, RestRequest
from plugins.module_utils.vsphere.sdk import vim
from tests.unit.plugins.module_utils.site.recording.test_anonymization import anonymized

SITES = sorted((Path(__file__).parents[5] / "fixtures" / "sites").glob("*.tar.xz"))
STRUCTURES = {
    "Virtual machine guest-1 is down because host-2.domain-1.example is down": (
        "word-1 word-2 guest-1 word-3 word-4 word-5 host-2.domain-1.example word-3 word-4"
    ),
    "Moved from 10.0.0.1 to 10.0.0.2 failed (error 195887107)": (
        "word-1 word-2 198.18.0.1 word-3 198.18.0.2 word-4 (word-5 195887107)"
    ),
    "The device 0000:3b:00.0 of vmnic0 has 00:50:56:aa:bb:1f since 2026-07-03T14:59:17.123Z, 0x1f": (
        "word-1 word-2 0000:3b:00.0 word-3 vmnic0 word-4 00:50:56:00:00:01 word-5 2026-07-03T14:59:17.123Z, 0x1f"
    ),
    "Key 01234567-0000-4000-8000-00000000000b, 2001:db8:7::1f, ABCDE-ABCDE-ABCDE-ABCDE-ABCDE": (
        "word-1 00000000-0000-4000-8000-000000000001, 2001:db8::1, XXXXX-XXXXX-XXXXX-XXXXX-00001"
    ),
    "/vmfs/volumes/payroll/obermeier/obermeier.vmx": "/vmfs/volumes/word-1/word-2/word-2.vmx",
}
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


@pytest.mark.parametrize("text", STRUCTURES)
def test_signs_numbers_addresses_and_pseudonyms_stay(text: str) -> None:
    pseudonyms = Pseudonyms()
    pseudonyms.name("guest", "granite")
    pseudonyms.name("host", "anvil")
    pseudonyms.name("host", "basalt.acme.org")

    assert pseudonyms.free_text(text) == STRUCTURES[text]


@pytest.mark.parametrize(("text", "words"), SECRETS)
def test_replaces_words_that_may_be_names(text: str, words: list[str]) -> None:
    pseudonyms = Pseudonyms()
    found = pseudonyms.free_text(text)
    assert not [word for word in words if word in found.lower()], found
    assert pseudonyms.counted()["word"] >= 1
    assert pseudonyms.free_text(found) == found


def test_each_word_keeps_its_pseudonym() -> None:
    pseudonyms = Pseudonyms()
    pseudonyms.name("guest", "granite")
    result = pseudonyms.free_text("Granite moved for Feldspar, then feldspar moved for basalt")
    assert result == "guest-1 word-1 word-2 word-3, word-4 word-3 word-1 word-2 word-5"
    assert pseudonyms.free_text("feldspar") == "feldspar", "one word alone is a value of the API"
    assert pseudonyms.free_text("feldspar", is_sentence=True) == "word-3"
    assert pseudonyms.counted() == {"guest": 1, "word": 5}


@given(st.text())
def test_replaces_every_word_of_any_text(text: str) -> None:
    found = Pseudonyms().free_text(f"of {text} of")
    rest = re.sub(free_text._FORMED, "", found)
    assert set(re.findall(r"[^\W\d_]{2,}", rest)) <= {"word"}, found


@pytest.mark.parametrize("path", SITES, ids=lambda path: path.stem)
def test_a_recorded_site_reads_alike_without_its_words(path: Path, tmp_path: Path) -> None:
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


def test_anonymizes_texts_of_events_tasks_faults_and_options() -> None:
    event = vim.event.VmMigratedEvent(fullFormattedMessage="granite moved to basalt by ACME\\wobermeier")
    assert (
        anonymized("VirtualMachine", "events", event).fullFormattedMessage
        == "guest-1 word-1 word-2 word-3 word-4 word-5\\word-6"
    )
    fault = vim.fault.NotFound(msg="Obermeier")
    error = vim.TaskInfo(key="task-1", error=fault, reason=vim.TaskReasonUser(userName="eve"))
    assert anonymized("Task", "info", error).error.msg == "word-1"
    option = vim.option.OptionValue(key="Syslog.global.logHost", value="udp://log.acme.org:514")
    assert anonymized("HostSystem", "config.option", [option])[0].value == "word-1://word-2.word-3.word-4:514"
    gpu = vim.host.GraphicsInfo(deviceName="NVIDIA A100-PCIE-40GB", vendorName="NVIDIA Corporation")
    assert anonymized("HostSystem", "config.graphicsInfo", [gpu])[0].deviceName == "NVIDIA A100-PCIE-40GB"


def test_notes_of_the_collection_keep_their_keys() -> None:
    note = {"name": "granite", "said": "moved \u00e9t\u00e9 for Feldspar", "moves": [1, 2.5], "ok": True}
    value = vim.CustomFieldsManager.StringValue(key=1, value=json.dumps(note))
    (found,) = anonymized("VirtualMachine", "customValue", [value])
    assert json.loads(found.value) == {**note, "name": "guest-1", "said": "word-1 word-2 word-3 word-4"}


def test_anonymizes_texts_of_commands_requests_and_calls() -> None:
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
    assert first.response == "<obj><N>word-1 word-2 word-3</N><M>up</M></obj>"
    assert (second.fault, second.detail) == ("word-4 word-5 word-6: word-3", "<d>word-7 word-8'word-9 word-10</d>")
    assert recording.requests[0].text == '{"messages": ["word-11 word-12: word-8"], "version": "a b"}'
    message = Pseudonyms().free_text
    mixed = '<obj><N a="b">Uplink of Feldspar</N>by Basalt<VendorName>Mellanox Technologies</VendorName></obj>'
    assert anonymization._in_xml(mixed, message) == (
        '<obj><N a="b">word-1 word-2 word-3</N>word-4 word-5<VendorName>Mellanox Technologies</VendorName></obj>'
    )
    reported = Pseudonyms().free_text
    assert anonymization._call(call, reported) == (
        'HostSystem h Query [{"text": "word-1 word-2 \\"word-3\\" word-4"}, "/vmfs/volumes/word-5"]'
    )
