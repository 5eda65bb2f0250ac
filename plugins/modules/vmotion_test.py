#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the folder and the settings of a vMotion test, which the action of the same name carries out."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion_test
short_description: Move every worker in turn while a job trains, and judge whether the job continued
version_added: 1.0.0
description:
  - Plans the moves, watches the job, moves one worker after another, or several at once (O(max_moves)), and judges the
    job after each move. It fails unless the job is continuous and every move took place. The role
    P(dml.vsphere.vmotion_test#role) sets the options.
  - The module writes all observations to a journal in the folder of the test, C(journal.jsonl), which determines the
    next step. If the controller was killed, the next run continues the test with its original settings. It looks up on
    the server a move that was started, and never starts a move twice.
  - The task is delegated to the host on which the job was started; everything else runs on the controller.
  - In check mode, the module shows the plan of the moves and writes nothing.
options:
  folder:
    description:
      - The folder of the test. If it contains an unfinished test, the module continues that test. If the option is
        empty, the module continues the unfinished test of this cluster in O(dir), or else creates a new folder there.
    type: str
    default: ""
  cluster:
    description:
      - The name of the cluster in vCenter.
    type: str
    required: true
  of_role:
    description:
      - Whether options that the task does not name have the values of the role P(dml.vsphere.vmotion_test#role).
    type: bool
    default: false
  workers:
    description:
      - Names of the workers to move; empty means all workers of the cluster.
    type: list
    elements: str
    default: []
  launcher:
    description:
      - The host of the inventory on which the job was started.
    type: str
    default: ""
  user:
    description:
      - The user who runs the job on its launcher; empty means the user who logs in.
    type: str
    default: ""
  run_dir:
    description:
      - The run directory of the job on the launcher.
    type: path
    default: ""
  records:
    description:
      - The folder on the nodes with the step records. It may be the run directory.
    type: path
    default: ""
  kubernetes:
    description:
      - For a job on Kubernetes, its C(name), C(namespace), C(kubeconfig), C(context), C(api) and C(names), as options
        of M(dml.vsphere.mpijob_info), which returns the state of the job and the identity of its pods. A recreated pod
        breaks the job. C(names) maps the name of each node to the name of the worker in vCenter.
      - Before each move, the module reads the findings of M(dml.vsphere.mpijob_info). A finding that stops prevents the
        move.
    type: dict
    default: {}
  nodes:
    description:
      - The nodes of the job, each with its C(name) and C(reach), the words of a command that runs an appended command
        on the node, such as V(ssh), its options and the address. The command must not send keep-alives, which would
        end the connection during a move.
    type: list
    elements: dict
    default: []
  dir:
    description:
      - The folder on this machine in which each test gets a separate folder.
    type: path
    required: true
  rounds:
    description:
      - The number of moves of every worker.
    type: int
    default: 1
  duration:
    description:
      - Seconds for which rounds continue, whatever their number. With 0, only the number of rounds counts.
    type: int
    default: 0
  max_moves:
    description:
      - The number of moves at a time, as O(dml.vsphere.vmotion_plan#module:max_moves) describes. They are judged
        as one. It has no effect with O(window), which empties one host at a time, or with O(observe).
    type: int
    default: 1
  canary:
    description:
      - If no worker of the cluster has ever moved, a worker without a rank of the job moves first, and the test ends if
        that move fails. V(auto) takes any such worker. Other values are the name of one, or empty for none.
    type: str
    default: auto
  return_home:
    description:
      - Whether every worker returns to its first host.
    type: bool
    default: false
  one_per_host:
    description:
      - Whether each host may have at most one worker.
    type: bool
    default: true
  warmup_steps:
    description:
      - The first steps of the job, which are not measured.
    type: int
    default: 20
  steps:
    description:
      - Steps that every rank completes before the first move and after each move.
    type: int
    default: 20
  warm_timeout:
    description:
      - Seconds until the job is warm.
    type: int
    default: 600
  move_timeout:
    description:
      - Seconds that one move may take.
    type: int
    default: 1800
  look_timeout:
    description:
      - Seconds within which every node must report the connections of its ranks.
    type: int
    default: 30
  finish_timeout:
    description:
      - Seconds that the test waits for the end of the job after the last move, to check that all ranks ended with the
        same parameters. With 0, it does not wait.
    type: int
    default: 0
  ends_job:
    description:
      - Whether the job ends with the test, because it was started for the test. The module asks the job to end after
        its epoch, which the benchmark of this collection supports, and stops it after O(finish_timeout).
    type: bool
    default: false
  stun_budget:
    description:
      - Seconds that the job tolerates without one worker. A move with a longer expected stun is not made. With
        O(max_moves), the expected stuns of the workers that move at once add up to no more than this.
    type: float
    default: 100
  guest_checks:
    description:
      - Whether to check the nodes first for timers that would end the job during a stun, for licences and for
        checkpoints.
    type: bool
    default: true
  checkpoints:
    description:
      - The folder on the nodes in which the job keeps checkpoints; empty if it keeps none.
    type: str
    default: ""
  checkpoint_minutes:
    description:
      - The greatest age of the newest checkpoint in minutes, if the job keeps checkpoints.
    type: int
    default: 60
  checkpoint_seconds:
    description:
      - The seconds between two checkpoints of the job, from which the verdict computes the cost of a restart; 0 if they
        are not known. If the records of the job show its checkpoints, the verdict uses those instead.
    type: int
    default: 0
  accept:
    description:
      - Rules that may be broken and are then shown as warnings. M(dml.vsphere.vmotion) has the rules for a move.
      - The rules for the guests are V(timers) (a timer that gives up on a silent peer before a stun ends), V(licence)
        (a vGPU licence that is missing or ends too soon), V(checkpoint) (a checkpoint that is missing, too old or not
        verified), V(versions) (a driver that the vGPU manager of a host does not run), and V(guest) (unreadable
        settings).
    type: list
    elements: str
    default: []
  limits:
    description:
      - Limits of the verdict, as the page docs/continuity.md explains them.
    type: dict
    default: {}
  require:
    description:
      - The facts that must have been observed in addition to the records.
    type: list
    elements: str
    choices: [launcher, transport, vsphere]
    default: [launcher, transport, vsphere]
  go_on:
    description:
      - Whether to continue after a breach or a failed move.
    type: bool
    default: false
  observe:
    description:
      - An observation instead of rounds, for O(duration) seconds or until the job ends. Others, such as DRS or an
        administrator, move the workers; the module finds each move and power event, and judges the job after each of
        these C(seconds). It writes nothing to vCenter and takes no lock. Set O(drs_override) and O(canary) to an empty
        text.
      - The file C(end) in the folder of the test, SIGINT and SIGTERM end the observation with its report.
      - The records of at least C(keep) and at most twice that many seconds are kept. C(hook) is a command as a list of
        words, which is run without a shell if a move stalled the job for C(stall_seconds), or if the job broke. It gets
        the events as JSON on its input.
    type: dict
    default: {}
  window:
    description:
      - A maintenance window instead of rounds. C(hosts) are changed one after another while the job trains. The
        module moves the workers of a host away, puts the host into maintenance mode, applies C(profile) and
        C(host_profiles) as M(dml.vsphere.esxi_profile) does, reboots the host if that needs a reboot, verifies that the
        profile is active, returns the host to service, and judges the job. After a breach it finishes this host
        and changes no other.
      - C(other_jobs) are other training jobs, whose workers move only with C(accept_other_jobs). Each of them is
        watched and judged too, and a breach of one ends the window as one of the job does.
      - C(maintenance_timeout), C(reboot_timeout), C(power_off), C(moved_by) and C(non_disruptive) are those of
        M(dml.vsphere.esxi_power).
    type: dict
    default: {}
  drs_override:
    description:
      - The DRS automation level of the workers during the test; empty leaves it unchanged.
    type: str
    default: manual
  ending:
    description:
      - The reason for which the unfinished test or window in O(folder) ends now instead of continuing. It is judged,
        and the lock, the DRS settings and the watch are released. A host out of service stays so.
    type: str
    default: ""
  site:
    description: A caution about the site, such as that it is simulated, as the first line of the page of the test.
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.continuity_verdict
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Show the moves of a test of cluster gpu
  dml.vsphere.vmotion_test:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
  check_mode: true

- name: Test cluster gpu
  dml.vsphere.vmotion_test:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
    launcher: worker01
    run_dir: /var/lib/dml/runs/one
    records: /var/lib/dml/runs/one
    nodes:
      - {name: worker01, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.1]}
      - {name: worker02, reach: [ssh, -oBatchMode=yes, ubuntu@10.0.1.2]}
  delegate_to: worker01
"""

RETURN = r"""
folder:
  description: The folder of the test.
  returned: when it was carried out
  type: str
verdict:
  description: V(continuous), V(broken) or V(inconclusive).
  returned: when the job was judged
  type: str
moved:
  description: Whether V(all), V(some) or V(none) of the moves took place.
  returned: when the job was judged
  type: str
other_jobs:
  description:
    - The other training jobs of a maintenance window whose workers moved, each with C(title), C(nodes), the nodes that
      were to move as C(moving), and C(verdict), C(breaches), C(unproven), C(longest_gap_s) and C(state), or C(why) the
      job was not judged.
  returned: if workers of other training jobs moved
  type: list
  elements: dict
moves:
  description: The moves that are planned.
  returned: in check mode
  type: list
  elements: dict
"""
