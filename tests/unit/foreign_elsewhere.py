"""The tests of files that take foreign texts apart, if tests/unit/foreign_readers.py does not have them."""

from __future__ import annotations

_UNIT = "tests/unit/plugins/module_utils"
_RECORDS, _HERE = f"{_UNIT}/watch/test_odd_records.py", "tests/unit/test_foreign_text.py"
_ROLLBACK = "tests/unit/plugins/plugin_utils/test_rollback_program.py"
_ANONYMOUS = f"{_UNIT}/site/recording/test_anonymization.py"
_OPTIONS = ("core/run_request", "core/variable_types", "hosts/vib", "kubernetes/job_spec")
_DISCOVERY = ("discovery/inventory_plan", "discovery/inventory_text")
_CHECKPOINTS = ("checkpoint", "checkpoint_faults", "checkpoint_reader")
_LOCAL = ("maintenance/lock/holder", "training/guest/environment", "core/observer_clock")
_KUBERNETES = f"{_UNIT}/kubernetes/test_odd_objects.py"
_ANSWERS = f"{_UNIT}/vsphere/test_odd_answers.py"
USER, OURS = "the user wrote it", "this collection wrote it, or the kernel of the local machine"
ELSEWHERE: dict[str, str] = {
    **{f"plugin_utils/{one}.py": OURS for one in ("world", "modules", "trial_site")},
    **dict.fromkeys(("trials/folder/trial_folder.py", "watch/beside_records.py"), OURS),
    **dict.fromkeys(("trials/steps/window_end.py", "kubernetes/mpijob.py"), USER),
    **dict.fromkeys(
        ("lookup/run_request.py", "plugin_utils/requested_options.py", "plugin_utils/packed_folder.py"), USER
    ),
    **{f"{one}.py": OURS for one in ("site/recording/recorder", "moves/move/move_watch", "hosts/module_privileges")},
    **{f"{one}.py": OURS for one in (*_LOCAL, "fabric/recorded_settings")},
    "site/acceptance/assumption_checks.py": f"{_UNIT}/site/acceptance/test_acceptance.py",
    "site/conformance/conformance.py": f"{_UNIT}/site/conformance/test_conformance.py",
    "site/acceptance/shapes.py": f"{_UNIT}/site/acceptance/test_acceptance.py",
    **{f"site/{one}.py": f"{_UNIT}/site/discovery/test_inventory_plan.py" for one in _DISCOVERY},
    "site/recording/free_text.py": f"{_UNIT}/site/recording/test_free_text.py",
    "plugin_utils/node_modules.py": "tests/unit/plugins/plugin_utils/test_node_modules.py",
    **{f"hosts/rollback/{one}.py": _ROLLBACK for one in ("evidence", "restoring", "ways")},
    **{f"{one}.py": USER for one in _OPTIONS},
    **dict.fromkeys(("vsphere/option_definitions.py", "workers/unified_memory.py"), USER),
    "guests/signing_key.py": "tests/integration/test_signing_key.py",
    "kubernetes/api/connection.py": f"{_UNIT}/kubernetes/api/test_connection.py",
    **{f"kubernetes/{one}.py": _KUBERNETES for one in ("causes", "gpu_operator", "object_fields", "preflight", "seen")},
    # By their checks:
    **{f"guests/{one}.py": _HERE for one in ("mpi_checks", "kubernetes_member", "slurm_timers", "slurm_cluster")},
    **{f"{one}.py": _HERE for one in ("core/json_values", "guests/node_settings", "guests/training_image")},
    "core/schema.py": f"{_UNIT}/core/test_schema.py",
    **{f"{one}.py": USER for one in ("training/launch/mpirun", "guests/stack/part_versions", "workers/worker_spec")},
    "slurm/own_job.py": f"{_UNIT}/slurm/test_own_job.py",
    "slurm/requeued_job.py": f"{_UNIT}/slurm/test_requeued_job.py",
    "training/results/outputs.py": f"{_UNIT}/training/results/test_outputs.py",
    "training/output/formats.py": f"{_UNIT}/training/test_log_any.py",
    "training/pairs/pair_result.py": f"{_UNIT}/training/pairs/test_pair_result.py",
    **{f"training/results/{one}.py": f"{_UNIT}/training/results/test_newest_checkpoint.py" for one in _CHECKPOINTS},
    "training/results/saved_attempts.py": f"{_UNIT}/continuity/test_restarts.py",
    "training/output/log.py": f"{_UNIT}/training/transport/test_job_settings.py",
    "training/transport/proof.py": f"{_UNIT}/training/transport/test_rdma_counters.py",
    **{f"site/recording/{one}.py": _ANONYMOUS for one in ("anonymization", "pseudonyms")},
    **dict.fromkeys(("hosts/vib.py", "vsphere/rest.py", "vsphere/wire.py"), _HERE),
    "vsphere/route.py": _ANSWERS,
    **{f"watch/{one}.py": _RECORDS for one in ("growing_file", "guest_program", "link", "node_programs")},
    **{f"watch/{one}.py": _RECORDS for one in ("records_program", "transport_program", "watcher")},
    "watch/gpu_program.py": f"{_UNIT}/watch/test_node_programs.py",
    "workers/library_templates.py": f"{_UNIT}/workers/test_library_templates.py",
    **dict.fromkeys(("training/runs/rank_words.py", "training/runs/variations.py"), USER),
    **dict.fromkeys(("training/launch/data.py", "training/running/busy.py"), USER),
    "training/programs/ask.py": f"{_UNIT}/training/programs/test_ask.py",
    "watch/runs_program.py": f"{_UNIT}/watch/test_read_runs.py",
    "training/guest/job_output.py": f"{_UNIT}/watch/test_node_view.py",
    "training/results/last_metrics.py": f"{_UNIT}/training/results/test_last_metrics.py",
    "training/results/known_runs.py": f"{_UNIT}/training/results/test_known_runs.py",
    "training/programs/restart_commands.py": f"{_UNIT}/training/programs/test_restart_commands.py",
    **{f"watch/{one}_program.py": f"{_UNIT}/watch/test_{one}_program.py" for one in ("signal", "stack")},
    "watch/hang_program.py": f"{_UNIT}/watch/test_hang_program.py",
}
