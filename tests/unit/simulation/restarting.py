"""Random histories in which windows also stop a job at a checkpoint, and start it again after its hosts."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from .machine import FAULTS, HOSTS, SiteMachine
from .operations import End

# The steps between two checkpoints, and the seconds for which a window by restart waits for one.
SAVES_EVERY, RESTART_WAIT = 100, 1200
# Acts of the owner, of another user and of a guest during it.
DISTURBANCES = ("stops", "starts_beside", "hangs")
# The signal that a window sends, and the answer of the program.
ANSWERS = [("", ""), ("", ""), ("USR1", "nothing"), ("USR1", "save"), ("TERM", "save and end"), ("TERM", "end")]


class RestartMachine(SiteMachine):
    """Windows by restart besides all else."""

    @rule(
        most=st.integers(1, 3), how=st.sampled_from(ANSWERS), faults=FAULTS, seconds=st.sampled_from([0.0, 0.0, 3600.0])
    )
    def restart_around_hosts(
        self, most: int, how: tuple[str, str], faults: dict[int, tuple[str, str]], seconds: float
    ) -> None:
        """A window stops the job at a checkpoint, shuts its workers down, and starts it again."""
        self.restart(most, how, faults, self.end_after(seconds))

    def restart(self, most: int, how: tuple[str, str], faults: dict[int, tuple[str, str]], end: End) -> None:
        """Open a window by restart, or continue it."""
        self.start_job_if_none()
        if self.site.job and not self.site.stopped:
            self.site.job.every, self.site.job.at_signal = SAVES_EVERY, how[1]
        window = {"by": "restart", "checkpoint_wait": RESTART_WAIT, "checkpoint_signal": how[0]}
        self.change_hosts(faults, end, under_training=True, most=most, window=window)

    def end_after(self, seconds: float) -> End:
        """Return the end of a window; it has none after 0 seconds."""
        return End.after(self.site, seconds, is_date=True) if seconds else End()

    @rule(
        point=st.integers(60, 330),
        events=st.lists(st.sampled_from(["waits", "alarm", "loses", "dies", *DISTURBANCES]), max_size=2),
        host=st.sampled_from(HOSTS),
        seconds=st.sampled_from([0.0, 0.0, 3600.0, 14400.0]),
    )
    def kill_a_restart_and_go_on(self, point: int, events: list[str], host: str, seconds: float) -> None:
        """A window by restart is killed, much happens, and it runs again with the same end."""
        self.request_profile(1, leaves=True)
        end = self.end_after(seconds)
        self.restart(2, ("", ""), {point: ("kill", "")}, end)
        for act in events:
            self.another_user(act, host)
        self.restart(2, ("", ""), {}, end)

    @rule(faults=FAULTS, most=st.integers(1, 2))
    def restart_beside_another_job(self, faults: dict[int, tuple[str, str]], most: int) -> None:
        """Workers of another job move, and then the own job restarts."""
        self.start_job_if_none()
        self.another_user("starts_beside", self.site.workers.get("w3", HOSTS[2]))
        window = {"by": "restart", "checkpoint_wait": RESTART_WAIT, "accept_other_jobs": True}
        self.change_hosts(faults, End(), under_training=True, most=most, window=window)

    @rule(point=st.integers(60, 330), act=st.sampled_from(DISTURBANCES), host=st.sampled_from(HOSTS))
    def disturb_a_restart(self, point: int, act: str, host: str) -> None:
        """The owner stops the job, another user starts one on workers that are on again, or a guest hangs."""
        self.request_profile(1, leaves=True)
        self.restart(2, ("", ""), {point: (act, host)}, End())


class SlurmMachine(RestartMachine):
    """The same around a job in Slurm, whose nodes the windows reserve."""

    def __init__(self) -> None:
        super().__init__()
        self.site.has_slurm = True
