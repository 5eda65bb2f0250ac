"""The files of a folder that go to the nodes, and the refusals before anything is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.launch.folder import (
    FILE,
    LINK,
    LONGEST,
    OTHER,
    FolderFile,
    check,
    check_command,
    check_secrets,
    is_ignored,
    is_private_name,
    patterns_of,
    script_of,
    secret_in,
)

TRAIN = FolderFile("train.py", FILE, 100)
PRIVATE = (
    *(".aws/credentials", ".kube/config", ".git-credentials", ".netrc", ".pypirc", ".npmrc", "server.PEM", "id_work"),
    *("vault.kdbx", ".env.local", ".docker/config.json", ".cache/huggingface/token", ".ssh/config", "prod.env"),
    *("home/.aws/config", "Server.Key", "id_ed25519_sk", "keys.p12", "site.pfx", "putty.ppk", "store.jks"),
    *("application_default_credentials.json", "client_secret_123.json", ".ngc/config", "kaggle.json", "x/.pgpass"),
    *("terraform.tfstate", "secrets.yaml", ".bash_history", ".vault_pass.txt", "lab.kubeconfig", "rclone.conf"),
)
ORDINARY = (
    *("train.py", "tokenizer.json", "tokens.txt", "id_rsa.pub", "id_map.json", "environment.yml", "keys.py"),
    *("key_frames.csv", "aws.py", "docker/config.json", "config/credentials.py", "monkey.txt", "data/token_ids.bin"),
)
SECRETS = {
    b"-----BEGIN RSA PRIVATE KEY-----": "a private key",
    b"-----BEGIN PRIVATE KEY-----": "a private key",
    b"-----BEGIN PGP PRIVATE KEY BLOCK-----": "a private key",
    b'{"private_key": "-----BEGIN PRIVATE KEY-----\\nMIIE': "a private key",
    b"\x03\xd9\xa2\x9a\x67\xfb\x4b\xb5": "a password database",
    b"AKIAIOSFODNN7EXAMPLE": "an AWS access key",
    b"aws_secret_access_key = " + b"x" * 40: "an AWS access key",
    b"ghp_" + b"a1B2" * 9: "a GitHub token",
    b"github_pat_" + b"a" * 82: "a GitHub token",
    b"glpat-" + b"a" * 20: "a GitLab token",
    b"hf_" + b"a" * 34: "a Hugging Face token",
    b"nvapi-" + b"a" * 64: "an NVIDIA API key",
    b"//registry.npmjs.org/:_authToken=" + b"a" * 36: "a registry token",
    b"pypi-AgEIcHlwaS5vcmc" + b"a" * 60: "a PyPI token",
}
HARMLESS = (
    *(b"-----BEGIN CERTIFICATE-----", b"-----BEGIN PUBLIC KEY-----", b"ssh-ed25519 AAAAC3NzaC1lZDI1", b"AKIA short"),
    *(b"hf_hub_download(repo)", b"ghp_token = read()", b"os.environ['aws_secret_access_key']", b"npm_config_cache"),
)


def test_an_ignore_file_has_one_pattern_per_line() -> None:
    assert patterns_of("# data\n\n data/ \n*.csv\n") == ["data/", "*.csv"]


@pytest.mark.parametrize("pattern", ["!keep.csv", "**/x"])
def test_a_pattern_that_would_be_misread_is_refused(pattern: str) -> None:
    with pytest.raises(Refused, match=r"\.dmlignore: could not read its patterns: .* uses ! or \*\*; use names, paths"):
        patterns_of(pattern)


@pytest.mark.parametrize(
    ("path", "pattern", "ignored"),
    [
        ("data", "data/", True),
        ("a/data", "data", True),
        ("a/data", "/data", False),
        ("data", "/data", True),
        ("a/b.csv", "*.csv", True),
        ("a/b.csv", "a/*.csv", True),
        ("b/b.csv", "a/*.csv", False),
        ("Data", "data", False),
    ],
)
def test_a_pattern_matches_a_name_or_a_path(path: str, pattern: str, ignored: bool) -> None:
    assert is_ignored(path, [pattern]) is ignored


def test_a_good_folder_passes() -> None:
    link = FolderFile("mylib/same.py", LINK, link="../train.py")
    check("/f", [TRAIN, link], 1)
    check_secrets("/f", {})


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ([], "it contains no file to copy; "),
        ([TRAIN, FolderFile("pipe", OTHER)], "pipe is not a file, a folder or a link; "),
        ([FolderFile("a/me", LINK, link="me", loops=True)], "the link a/me leads back to itself; remove it"),
        ([FolderFile("a/up", LINK, link="../../x")], "the link a/up points outside the folder, to ../../x; "),
        ([FolderFile("abs", LINK, link="/etc/passwd")], "the link abs points outside the folder, to /etc/passwd; "),
        (
            [FolderFile("up/more", LINK, link="sub/../x", leads_out=True)],
            "the link up/more points outside the folder, to sub/../x; ",
        ),
        (
            [FolderFile(f"{size}.bin", FILE, size * 100_000) for size in range(1, 8)],
            "2.8 MB, more than 1 MB; the largest files are 7.bin .0.7 MB., 6.*, 5.*, 4.*, 3.bin .0.3 MB.; ",
        ),
    ],
)
def test_a_folder_is_refused_with_its_files(files: list[FolderFile], cause: str) -> None:
    with pytest.raises(Refused, match=rf"training_folder /f: could not copy the folder to the nodes: .*{cause}"):
        check("/f", files, 1)


def test_names_the_secrets_of_a_folder_with_reasons() -> None:
    secrets = {f"{number}.pem": "its name" for number in range(11)}
    cause = r"keys or passwords: 0.pem \(its name\), .*, 9.pem \(its name\) and 1 more; add .* training_include if the"

    with pytest.raises(Refused, match=cause):
        check_secrets("/f", secrets)


def test_accepts_a_folder_of_exactly_the_limit() -> None:
    check("/f", [FolderFile("a", FILE, 1_000_000)], 1)


def test_the_script_must_be_in_the_folder() -> None:
    check_command("/f", ["python", "./train.py"], [TRAIN])
    check_command("/f", ["python", "/opt/other.py"], [TRAIN])
    check_command("/f", ["python", "-m", "mylib.train"], [TRAIN])
    with pytest.raises(Refused, match=r"could not run tran\.py: the copied files do not contain it; training_command"):
        check_command("/f", ["python", "tran.py"], [TRAIN])
    with pytest.raises(Refused, match=r"could not train: training_command is empty; set training_command"):
        check_command("/f", [], [TRAIN])


def test_the_script_is_the_first_python_file() -> None:
    assert script_of(["python", "-u", "a.py", "b.py"]) == "a.py"
    assert script_of(["./run", "--file=-x"]) == ""


@pytest.mark.parametrize("path", PRIVATE)
def test_names_of_keys_and_passwords_are_private(path: str) -> None:
    assert is_private_name(path)


@pytest.mark.parametrize("path", ORDINARY)
def test_names_of_ordinary_files_are_not_private(path: str) -> None:
    assert not is_private_name(path)


@pytest.mark.parametrize("secret", SECRETS)
def test_recognizes_a_key_or_token_in_any_file(secret: bytes) -> None:
    assert secret_in([b"first = 1\n" + secret + b"\n"]) == SECRETS[secret]


@pytest.mark.parametrize("text", HARMLESS)
def test_ignores_text_that_only_resembles_a_secret(text: bytes) -> None:
    assert secret_in([text]) == ""


@given(st.sampled_from(sorted(SECRETS)), st.integers(1, 400), st.integers(0, 300))
def test_finds_a_secret_across_block_boundaries(secret: bytes, size: int, before: int) -> None:
    data = b"." * before + secret + b"." * LONGEST

    assert secret_in(data[at : at + size] for at in range(0, len(data), size)) == SECRETS[secret]
