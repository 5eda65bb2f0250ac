# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packs a folder of the controller, and sends the archive to a node; a large one only if the node does not have it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase

from ..module_utils.durable.calls import Result
from ..module_utils.errors import Refused
from ..module_utils.training.launch import folder, mpirun
from ..plugin_utils import packed_folder

ARGUMENTS = {
    **folder.ARGUMENTS_OF_FOLDER,
    "sha256": {"type": "str", "default": ""},
    "kept": {"type": "path", "default": ""},
    "environment": {"type": "dict"},
    "folders": {"type": "list", "elements": "str", "default": []},
    # Paths of the node, which the controller does not expand.
    "dest": {"type": "str", "required": True},
    "store": {"type": "str", "required": True},
}


def selected(given: dict[str, Any]) -> list[folder.FolderFile]:
    """Return the files that go to the nodes, or raise the reason to refuse the folder."""
    files = packed_folder.files_of(given["path"], given["exclude"])
    files = packed_folder.with_times(given["path"], files) if given["keep_times"] else files
    folder.check(given["path"], files, given["limit"])
    folder.check_secrets(given["path"], packed_folder.secrets_of(given["path"], files, given["include"]))
    if given["command"] is not None:
        folder.check_command(given["path"], mpirun.words_of(given["command"]), files)
    return files


class ActionModule(ActionBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Runs training_folder on the node with a small archive; a large one follows if the node lacks it."""

    _supports_check_mode = True

    def run(self, tmp: object = None, task_vars: object = None) -> Result:
        """Return the result of the module, and the number and the size of the files."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        _validation, given = self.validate_argument_spec(ARGUMENTS)
        kept = given.pop("kept")
        try:
            # An archive of an earlier run is not packed again.
            files = [] if given["sha256"] else selected(given)
            given["path"] = given["path"] or ""
            given["sha256"] = given["sha256"] or packed_folder.digest(given["path"], files)
            content = "" if given["shared"] else packed_folder.small_archive(given["path"], files, kept)
            answer = self._module({**given, "content": content or None}, task_vars)
            answer = self._completed(answer, given, files, kept, task_vars)
        except (Refused, mpirun.LauncherError, OSError) as error:
            return {**result, "failed": True, "msg": str(error)}
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        facts = {
            "files": sum(file.kind != folder.EMPTY for file in files),
            "bytes": sum(file.size for file in files),
            "git": {} if given["shared"] else packed_folder.commit(given["path"], files),
        }
        return {**result, **answer, **facts}

    def _completed(
        self, answer: dict[str, Any], given: dict[str, Any], files: list[folder.FolderFile], kept: str, task_vars: Any
    ) -> Result:
        """Return the answer of the node once it has the archive."""
        if not (answer.get("failed") and answer.get("missing")):
            return answer
        if given["shared"] and self._task.check_mode:
            # Data may be large: only a run sends it.
            return {"changed": True, "missing": True, "data": answer.get("data")}
        found = packed_folder.files_of(given["path"]) if given["shared"] else files
        return self._with_archive(given, found, kept, task_vars) if found or os.path.isfile(kept) else answer

    def _module(self, given: dict[str, object], task_vars: object) -> Result:
        arguments = {key: value for key, value in given.items() if value is not None}
        return dict(self._execute_module(module_args=arguments, task_vars=task_vars))

    def _with_archive(
        self, given: dict[str, Any], files: list[folder.FolderFile], kept: str, task_vars: object
    ) -> Result:
        if not files:
            return self._sent(given, kept, task_vars)
        handle, local = tempfile.mkstemp(prefix="dml-code-", dir=constants.DEFAULT_LOCAL_TMP)
        try:
            with open(handle, "wb") as archive:
                packed_folder.pack(given["path"], files, archive)
            return self._sent(given, local, task_vars)
        finally:
            os.unlink(local)

    def _sent(self, given: dict[str, object], archive: str, task_vars: object) -> Result:
        if not self._connection._shell.tmpdir:
            self._make_tmp_path()
        there = self._connection._shell.tmpdir
        sent = self._transfer_file(archive, self._connection._shell.join_path(there, Path(archive).name))
        self._fixup_perms2((there, sent))
        return self._module({**given, "archive": sent}, task_vars)
