"""Which files look like keys, passwords or tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.launch.secrets import LONGEST, is_private_name, secret_in

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
