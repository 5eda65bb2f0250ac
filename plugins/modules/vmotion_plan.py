#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: in which order the workers of a cluster can move."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion_plan
short_description: Plan a rolling move of the workers of a cluster, without moving them
version_added: 1.0.0
description:
  - Finds the shortest sequence of moves in which each chosen worker goes to another host at least once, and every move
    goes to a GPU slot that is free at that moment. One spare slot is enough for any number of workers with one vGPU.
  - If there is no such sequence, the error names the missing slots and their hosts.
options:
  cluster: {description: The cluster whose workers move., type: str, required: true}
  workers:
    description: Names of the workers to move. The default is all running workers of the cluster.
    type: list
    elements: str
  return_home: {description: Whether every worker returns to its present host., type: bool, default: false}
  one_per_host: {description: Whether each host may have at most one worker., type: bool, default: false}
  max_moves:
    description:
      - The number of moves at a time. With more than one, the plan has waves; a wave ends before the next one starts.
      - All workers count as those of one synchronous job, which wait for each other. The expected stuns of the workers
        in a wave add up to no more than O(stun_budget); a worker with an unknown stun moves alone.
      - A worker with a vGPU shares neither of its two hosts with another move. Other workers share a link of 10 Gb/s
        with up to eight moves and one of 1 Gb/s with up to four, as vCenter allows; a link of unknown speed has one.
      - Slots, memory and CPU are free before the wave starts, and the cluster's rules for virtual machines hold
        throughout.
      - It has no effect with O(empty_hosts).
    type: int
    default: 1
  stun_budget:
    description: Seconds that the job tolerates without its workers, for O(max_moves).
    type: float
    default: 100
  empty_hosts:
    description:
      - Hosts to empty one after another, for example for a maintenance window. The plan then contains the order of
        these hosts and the fewest moves that empty each of them before its change, instead of a move of every worker.
    type: list
    elements: str
  avoid_hosts:
    description: Hosts to which no worker moves, with O(empty_hosts).
    type: list
    elements: str
    default: []
  non_disruptive:
    description:
      - Whether vCenter must then evacuate O(empty_hosts) without disturbing workloads, as
        O(dml.vsphere.esxi_power#module:non_disruptive). If vCenter does not support that, there is no plan.
    type: bool
    default: false
  spare:
    description:
      - Hosts of another cluster of this vCenter, which take workers if O(empty_hosts) cannot be emptied without them.
    type: dict
    suboptions:
      cluster: {description: The other cluster., type: str, required: true}
      hosts: {description: Its hosts that may take workers; without names all., type: list, elements: str, default: []}
      return_home:
        description: Whether the plan brings these workers back after the last host, as RV(returns).
        type: bool
        default: true
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.vmotion
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Plan the moves of cluster gpu
  dml.vsphere.vmotion_plan:
    cluster: gpu
  register: planned

- name: Show the moves
  ansible.builtin.debug:
    msg: "{{ planned.moves }}"
"""

RETURN = r"""
moves:
  description:
    - The moves in their order, each with C(worker), C(source) and C(target). With O(max_moves) above 1, also with the
      number of its C(wave).
  returned: success
  type: list
  elements: dict
waves:
  description:
    - The waves in their order, each with its number C(wave) and the number of its C(moves). If another worker could not
      join it, C(waits) is the name of that worker, and C(reason) the cause.
  returned: with O(max_moves) above 1
  type: list
  elements: dict
stages:
  description: With O(empty_hosts), the hosts in their order, each with C(host) and the C(moves) that empty it.
  returned: with O(empty_hosts)
  type: list
  elements: dict
returns:
  description: The moves that bring workers back from the O(spare) hosts after the last host.
  returned: with O(spare)
  type: list
  elements: dict
not_applicable:
  description: Workers that can never move while they run, with the devices that tie them to their hosts.
  returned: success
  type: dict
powered_off: {description: Workers that do not run., returned: success, type: list, elements: str}
profile:
  description: The vGPU profile whose slots were counted, or several with commas; empty for workers without a GPU.
  returned: success
  type: str
slots:
  description:
    - The number of slots of each host for these workers, including those that they use. With several profiles, an upper
      bound.
  returned: success
  type: dict
at: {description: The host of each worker., returned: success, type: dict}
rdma:
  description:
    - The host of each running virtual machine with a paravirtual RDMA card. Two of them on one host share its RDMA
      device, whose counters then do not show which of them uses RDMA.
  returned: success
  type: dict
clock_offset_s: {description: The server's clock minus the local clock in seconds., returned: success, type: float}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.maintenance import maintenance_mode
from ..module_utils.moves.move import clock_offset, moving_fleet, rolling_moves
from ..module_utils.moves.plan.plan import Move
from ..module_utils.moves.plan.waves import plan_waves
from ..module_utils.vsphere import session
from ..module_utils.workers import existing_workers
from ..module_utils.workers.worker_cluster import WorkerCluster

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "workers": {"type": "list", "elements": "str"},
    "return_home": {"type": "bool", "default": False},
    "one_per_host": {"type": "bool", "default": False},
    "max_moves": {"type": "int", "default": 1},
    "stun_budget": {"type": "float", "default": 100},
    "empty_hosts": {"type": "list", "elements": "str"},
    "avoid_hosts": {"type": "list", "elements": "str", "default": []},
    "non_disruptive": {"type": "bool", "default": False},
    "spare": {
        "type": "dict",
        "options": {
            "cluster": {"type": "str", "required": True},
            "hosts": {"type": "list", "elements": "str", "default": []},
            "return_home": {"type": "bool", "default": True},
        },
    },
}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    with session.session(params) as opened:
        if params["non_disruptive"] and params["empty_hosts"]:
            maintenance_mode.refuse_unknown_mode(opened, ", ".join(params["empty_hosts"]))
        known = [worker["name"] for worker in existing_workers.read_workers(opened, [params["cluster"]])]
        selected = rolling_moves.select_workers(params["cluster"], known, params["workers"])
        cluster = WorkerCluster(opened, params["cluster"], params["spare"])
        workers = rolling_moves.read_workers(cluster, known, selected, params["empty_hosts"])
        if params["empty_hosts"] is not None:
            plan = with_stuns(cluster, workers, emptied(cluster, workers, params), params)
        else:
            plan = planned(cluster, workers, selected, params)
        offset = clock_offset.measure(opened).seconds
    return {"changed": False, **plan, **rolling_moves.as_dict(workers), "clock_offset_s": offset}


def planned(
    cluster: WorkerCluster, workers: rolling_moves.ClusterWorkers, selected: list[str], params: runner.Params
) -> runner.Result:
    """Return the moves of the workers, one after another or in waves."""
    rules = {key: params[key] for key in ("return_home", "one_per_host")}
    moves = rolling_moves.plan_moves(workers, selected, **rules)
    if params["max_moves"] > 1:
        return in_waves(cluster, workers, moves, params)
    fleet = moving_fleet.read_serving(cluster, workers, params["one_per_host"])
    kept = rolling_moves.keep_rules(fleet, moves, workers.at, params["return_home"])
    return {"moves": [move._asdict() for move in kept]}


def emptied(cluster: WorkerCluster, workers: rolling_moves.ClusterWorkers, params: runner.Params) -> runner.Result:
    """Return the host changes with the moves that empty each host before."""
    workers.avoided = frozenset(params["avoid_hosts"])
    fleet = moving_fleet.read_room(cluster, workers, params["one_per_host"])
    window = rolling_moves.plan_window(workers, fleet, params["empty_hosts"])
    stages = [{"host": change.host, "moves": [move._asdict() for move in change.moves]} for change in window]
    spare = params["spare"] or {}
    back = rolling_moves.plan_return(workers, fleet, window) if spare.get("return_home") else []
    returns = {"returns": [move._asdict() for move in back]} if spare else {}
    return {"stages": stages, "moves": [move for stage in stages for move in stage["moves"]], **returns}


def with_stuns(
    cluster: WorkerCluster, workers: rolling_moves.ClusterWorkers, plan: dict[str, Any], params: runner.Params
) -> runner.Result:
    """Return the plan of a window with the expected stun of each move in seconds; None if it is not known."""
    if not plan["moves"] and not plan.get("returns"):
        return plan
    rules = moving_fleet.FleetLimits(params["stun_budget"], params["one_per_host"])
    fleet = moving_fleet.read_fleet(cluster, workers, rules)

    def stunned(move: dict[str, Any]) -> runner.Result:
        return {**move, "stun_s": fleet.workers[move["worker"]].stun_s.get(move["target"])}

    stages = [{**stage, "moves": [stunned(move) for move in stage["moves"]]} for stage in plan["stages"]]
    returns = {"returns": [stunned(move) for move in plan["returns"]]} if "returns" in plan else {}
    return {"stages": stages, "moves": [move for stage in stages for move in stage["moves"]], **returns}


def in_waves(
    cluster: WorkerCluster, workers: rolling_moves.ClusterWorkers, plan: list[Move], params: runner.Params
) -> runner.Result:
    rules = moving_fleet.FleetLimits(params["stun_budget"], params["one_per_host"])
    fleet = moving_fleet.read_fleet(cluster, workers, rules)
    moves = rolling_moves.keep_rules(fleet, plan, workers.at, params["return_home"])
    waves = plan_waves(fleet, moves, workers.at, params["max_moves"], return_home=params["return_home"])
    return {
        "moves": [{**move._asdict(), "wave": number} for number, wave in enumerate(waves, 1) for move in wave.moves],
        "waves": [
            {"wave": number, "moves": len(wave.moves), "waits": wave.waits, "reason": wave.reason}
            for number, wave in enumerate(waves, 1)
        ],
    }


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
