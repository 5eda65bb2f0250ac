"""Which objects of the MPI Operator the role that created them removes, and which stay; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import WholeError
from .object_fields import Object, part, several

MANAGER = "dml.vsphere"
# Others may have created these before: such an object stays, and the rest is removed.
MAY_STAY = ("CustomResourceDefinition", "Namespace")
# Kubernetes itself manages status and the rules of aggregated cluster roles.
_OF_KUBERNETES = "clusterrole-aggregation-controller"
_NOT = "The MPI Operator cannot be removed:"
_DEFINITION = ("CustomResourceDefinition", "mpijobs.kubeflow.org")


def removal(
    jobs: Sequence[Object], found: Sequence[Object], named: Sequence[Object], beside: Any, is_listed: bool = True
) -> dict[str, object]:
    """Return the objects to remove, the last created one first, and sentences on those that stay.

    ``found`` are the objects in ``named``, the manifests; ``beside`` are the other objects of each namespace, as the
    results of the loop that read them. A job would lose its operator, and its definition, so it prevents the removal.
    ``is_listed`` states whether the API server knew the kind of ``jobs``: one that starts reports none at first.
    """
    if not is_listed and any((thing["kind"], _name(thing)) == _DEFINITION for thing in found):
        raise WholeError(f"{_NOT} the API server has the definition of MPIJobs, but did not list them. Run again.")
    if jobs:
        names = ", ".join(sorted(map(_name, jobs)))
        raise WholeError(
            f"{_NOT} its removal would delete the MPIJobs {names}. Delete them first, including finished ones."
        )
    own, stays = [], []
    for thing in found:
        title, managers = f"{thing['kind']} {_name(thing)}", _managers(thing)
        by = f"was created or changed by {', '.join(managers) or 'an unknown manager'}"
        held = _others(thing, named, beside) if thing["kind"] == "Namespace" else []
        if managers == [MANAGER]:
            stays += [f"{title} stays: it contains {', '.join(held)}."] if held else []
            own += [] if held else [thing]
        elif thing["kind"] in MAY_STAY:
            stays.append(f"{title} stays: it {by}.")
        else:
            raise WholeError(f"{_NOT} {title} {by}, not only by this role. Remove it with the tool that installed it.")
    return {"remove": own[::-1], "stays": stays}


def _name(thing: Object) -> str:
    return str(part(thing, "metadata")["name"])


def _managers(thing: Object) -> list[str]:
    fields = several(part(thing, "metadata"), "managedFields")
    return sorted({str(each["manager"]) for each in fields if "subresource" not in each} - {_OF_KUBERNETES})


def _others(namespace: Object, named: Sequence[Object], beside: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the objects of others that would be lost with a namespace; those with an owner belong to another one."""
    there = [thing for each in beside if _name(each["item"][0]) == _name(namespace) for thing in each["resources"]]
    own = set(map(_name, named))
    return [_name(one) for one in there if "ownerReferences" not in one["metadata"] and _name(one) not in own]
