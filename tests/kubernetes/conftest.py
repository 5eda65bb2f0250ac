# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tests of the lab's Kubernetes: apart from those of nodes, whose labs would take what inotify has to give."""

from __future__ import annotations

from tests.lab.conftest import bare

__all__ = ["bare"]
