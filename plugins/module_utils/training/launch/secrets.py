"""Files that usually contain keys, passwords or tokens, recognized by their names and by their content."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

# A name, or the end of a path; case is ignored.
NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".*_history", ".htpasswd"),
    *(".pypirc", ".npmrc", ".yarnrc.yml", ".git-credentials", ".cargo/credentials*", ".gem/credentials"),
    *(".aws/*", ".azure/*", ".config/gcloud/*", "application_default_credentials.json", ".boto", ".s3cfg"),
    *(".kube/*", "kubeconfig", "*.kubeconfig", ".docker/config.json", ".dockercfg", ".config/containers/auth.json"),
    *(".ssh/*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk"),
    *("*.jks", "*.keystore", "*.kdb", "*.kdbx", "*.ovpn", "*.tfstate", "*.tfstate.*", "*.tfvars", ".terraformrc"),
    *("secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "credentials.json", "credentials.yml"),
    *("client_secret*.json", "*vault_pass*", "*vault-pass*", ".databrickscfg", "rclone.conf", ".mc/config.json"),
    *("token", ".token", "*.token", "stored_tokens", ".ngc/config", "kaggle.json", ".kaggle/*"),
)
# The private key that ssh-keygen -f id_NAME writes, which has no file name extension.
SSH_KEY = re.compile(r"id_[^./]+")
PUBLIC = "*.pub"
# The beginning of a key or token, the rest of it, and its name.
CONTENT = tuple(
    (start, re.compile(rest), kind)
    for start, rest, kind in (
        (b"-----BEGIN ", rb"(?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----", "a private key"),
        (b"PuTTY-User-Key-File-", rb"[0-9]", "a private key"),
        (b"AGE-SECRET-KEY-1", rb"[0-9A-Z]{20}", "a private key"),
        (b"\x03\xd9\xa2\x9a\x67\xfb\x4b", rb"[\xb5-\xb7]", "a password database"),
        (b"AKIA", rb"[A-Z2-7]{16}(?![0-9A-Za-z])", "an AWS access key"),
        (b"ASIA", rb"[A-Z2-7]{16}(?![0-9A-Za-z])", "an AWS access key"),
        (b"aws_secret_access_key", rb"\s{0,9}=\s{0,9}[0-9A-Za-z/+]{40}", "an AWS access key"),
        (b"AIza", rb"[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])", "a Google API key"),
        (b"ya29.", rb"[0-9A-Za-z_-]{40}", "a Google token"),
        (b"AccountKey=", rb"[0-9A-Za-z/+]{80}", "an Azure storage key"),
        (b"ghp_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"gho_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"ghu_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"ghs_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"ghr_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"github_pat_", rb"[0-9A-Za-z_]{50}", "a GitHub token"),
        (b"glpat-", rb"[0-9A-Za-z_-]{20}", "a GitLab token"),
        (b"hf_", rb"[0-9A-Za-z]{34}(?![0-9A-Za-z_])", "a Hugging Face token"),
        (b"nvapi-", rb"[0-9A-Za-z_-]{40}", "an NVIDIA API key"),
        (b"sk-ant-", rb"[0-9A-Za-z_-]{40}", "an API key"),
        (b"sk-proj-", rb"[0-9A-Za-z_-]{40}", "an API key"),
        (b"wandb_v1_", rb"[0-9A-Za-z_]{30}", "a Weights & Biases key"),
        (b"xoxb-", rb"[0-9A-Za-z-]{20}", "a Slack token"),
        (b"xoxp-", rb"[0-9A-Za-z-]{20}", "a Slack token"),
        (b"npm_", rb"[0-9A-Za-z]{36}(?![0-9A-Za-z_])", "an npm token"),
        (b"pypi-AgE", rb"[0-9A-Za-z_-]{40}", "a PyPI token"),
        (b"dckr_pat_", rb"[0-9A-Za-z_-]{20}", "a Docker token"),
        (b"_authToken=", rb"[0-9A-Za-z_+/=-]{20}", "a registry token"),
    )
)
LONGEST = 256


def is_private_name(path: str) -> bool:
    """Return whether a file with this path usually contains keys or passwords."""
    path = path.lower()
    if fnmatchcase(path, PUBLIC):
        return False
    return any(fnmatchcase(f"/{path}", f"*/{name}") for name in NAMES) or bool(
        SSH_KEY.fullmatch(path.rpartition("/")[2])
    )


def secret_in(blocks: Iterable[bytes]) -> str:
    """Return the kind of the first key or token in the content of a file, which comes in blocks; empty without one."""
    end = b""
    for block in blocks:
        data = end + block
        for start, rest, kind in CONTENT:
            if _is_in(data, start, rest):
                return kind
        end = data[-LONGEST:]
    return ""


def _is_in(data: bytes, start: bytes, rest: re.Pattern[bytes]) -> bool:
    at = data.find(start)
    while at >= 0:
        if rest.match(data, at + len(start)):
            return True
        at = data.find(start, at + 1)
    return False
