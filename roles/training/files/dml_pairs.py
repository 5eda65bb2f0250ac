"""Measure the bandwidth between pairs of nodes, as the rank of a node::

    mpirun ... python3 dml_pairs.py OPTIONS

The options are one word of JSON: rounds, nodes, library, seconds, repeats, bytes, stall, sysfs, devices (by rank) and
nccl. All ranks make the same rounds, in which a rank has one partner or pauses. Without NCCL a rank sends windows of
messages with MPI, as the OSU micro-benchmarks do; with NCCL the two ranks of a pair run all_reduce. Rank 0 writes
pairs.jsonl in the run directory after each round.
"""

# No "from __future__ import annotations" here: the Python in the whitepaper's image does not support it.

import ctypes
import glob
import json
import os
import platform
import sys
import threading
import time

STALLED = 17
WINDOW, RECORD_BYTES, PINGS = 8, 8192, 50
CONTINUE, LAST = b"\1", b"\0"
WORD_BYTES = 4


class Mpi:
    """The functions of Open MPI that the measurement uses, with ctypes and no compiler."""

    def __init__(self, path):
        self._mpi = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self._mpi.MPI_Init(None, None)
        self._world, self._byte = self._symbol("ompi_mpi_comm_world"), self._symbol("ompi_mpi_byte")
        rank, size = ctypes.c_int(), ctypes.c_int()
        self._mpi.MPI_Comm_rank(self._world, ctypes.byref(rank))
        self._mpi.MPI_Comm_size(self._world, ctypes.byref(size))
        self.rank, self.size = rank.value, size.value

    def _symbol(self, name):
        return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(self._mpi, name)))

    def send(self, data, peer):
        """Send a buffer, and return when it can be used again."""
        self._mpi.MPI_Send(data, len(data), self._byte, peer, 0, self._world)

    def receive(self, data, peer):
        """Fill a buffer."""
        self._mpi.MPI_Recv(data, len(data), self._byte, peer, 0, self._world, None)

    def window(self, buffers, peer, is_sender):
        """Send or receive several messages at once."""
        start = self._mpi.MPI_Isend if is_sender else self._mpi.MPI_Irecv
        requests = (ctypes.c_void_p * len(buffers))()
        for number, data in enumerate(buffers):
            place = ctypes.byref(requests, number * ctypes.sizeof(ctypes.c_void_p))
            start(data, len(data), self._byte, peer, 0, self._world, place)
        self._mpi.MPI_Waitall(len(buffers), requests, None)

    def gather(self, text):
        """Return the texts of all ranks to rank 0, and nothing to the others; no rank goes on before the others."""
        mine = ctypes.create_string_buffer(text, RECORD_BYTES)
        every = ctypes.create_string_buffer(RECORD_BYTES * self.size if self.rank == 0 else 1)
        how = (RECORD_BYTES, self._byte)
        self._mpi.MPI_Gather(mine, *how, every, *how, 0, self._world)
        self._mpi.MPI_Barrier(self._world)
        return [part.rstrip(b"\0") for part in _parts(every.raw)] if self.rank == 0 else []

    def end(self):
        """End MPI."""
        self._mpi.MPI_Finalize()


def _parts(raw):
    return [raw[begin : begin + RECORD_BYTES] for begin in range(0, len(raw), RECORD_BYTES)]


class Stall(threading.Thread):
    """End this rank if its measurement makes no progress: a lost large packet leaves MPI waiting forever."""

    def __init__(self, seconds):
        super().__init__(daemon=True)
        self._seconds, self._since, self._about = seconds, 0.0, ""

    def begin(self, about=""):
        """Start a measurement, or note that it makes progress."""
        self._about, self._since = about or self._about, time.monotonic()

    def pause(self):
        """Note that no measurement runs."""
        self._since = 0.0

    def run(self):
        while True:
            time.sleep(min(1.0, self._seconds / 4))
            if self._since and time.monotonic() - self._since > self._seconds:
                sys.stderr.write(f"StalledPairError: {self._about} moved no data for {self._seconds:g} s\n")
                sys.stderr.flush()
                # The partner also reports, before mpirun ends all ranks.
                time.sleep(1)
                os._exit(STALLED)


class MpiPair:
    """The bandwidth of windows of messages from one rank to the other."""

    def __init__(self, mpi, options, stall):
        self._mpi, self._stall = mpi, stall
        self._seconds, self._repeats = options["seconds"], options["repeats"]
        self._buffers = [ctypes.create_string_buffer(options["bytes"]) for _number in range(WINDOW)]

    def measure(self, peer):
        """Return the bandwidth from this rank to its partner; the lower rank sends first."""
        found = {"gbits": [], "latency_us": self._latency(peer), "sent": 0}
        # Without a first window, the first measurement would contain the start of the connection.
        for is_sender in (self._mpi.rank < peer, self._mpi.rank > peer):
            self._mpi.window(self._buffers, peer, is_sender)
            self._stall.begin()
        for _repeat in range(self._repeats):
            for is_sender in (self._mpi.rank < peer, self._mpi.rank > peer):
                count, seconds = self._one_way(peer, is_sender)
                if is_sender:
                    sent = count * WINDOW * len(self._buffers[0])
                    found["sent"] += sent
                    found["gbits"].append(sent * 8 / seconds / 1e9)
        return found

    def _one_way(self, peer, is_sender):
        count, begin, is_last = 0, time.perf_counter(), False
        while not is_last:
            is_last = time.perf_counter() - begin > self._seconds
            self._buffers[0][0] = LAST if is_last else CONTINUE
            self._mpi.window(self._buffers, peer, is_sender)
            is_last = self._buffers[0][0] == LAST
            self._stall.begin()
            count += 1
        # The answer of the receiver: only then has all data arrived.
        answer = ctypes.create_string_buffer(1)
        (self._mpi.receive if is_sender else self._mpi.send)(answer, peer)
        return count, time.perf_counter() - begin

    def _latency(self, peer):
        """Return half of the round trip of one byte in microseconds."""
        byte, begin = ctypes.create_string_buffer(1), time.perf_counter()
        calls = [self._mpi.send, self._mpi.receive]
        for _ping in range(PINGS):
            for call in calls if self._mpi.rank < peer else reversed(calls):
                call(byte, peer)
        return (time.perf_counter() - begin) / PINGS / 2 * 1e6


class Devices:
    """The network devices of this node in sysfs: the bytes that they sent, and what they are."""

    def __init__(self, sysfs):
        self._sysfs = sysfs

    def sent(self):
        """Return the bytes that each device sent: the peer, and not this node, chooses where data arrives."""
        counts = {}
        for path in glob.glob(os.path.join(self._sysfs, "class/net/*/statistics/tx_bytes")):
            counts[path.split("/")[-3]] = _number(path)
        for path in glob.glob(os.path.join(self._sysfs, "class/infiniband/*/ports/1/counters/port_xmit_data")):
            counts[path.split("/")[-5]] = _number(path) * WORD_BYTES
        return counts

    def about(self, name):
        """Return the identifier, the rate in Gbit/s and the MTU of a device."""
        net, rdma = (os.path.join(self._sysfs, "class", kind, name) for kind in ("net", "infiniband"))
        is_rdma = os.path.isdir(rdma)
        folder = rdma if is_rdma else net
        identifier = ":".join(_text(os.path.join(folder, "device", key))[2:] for key in ("vendor", "device"))
        beneath = sorted(glob.glob(os.path.join(folder, "device", "net", "*", "mtu")))
        mtu = _number(beneath[0] if beneath else os.path.join(net, "mtu"))
        megabits = _number(os.path.join(net, "speed"))
        rate = _text(os.path.join(folder, "ports", "1", "rate")).split(" ")[0] if is_rdma else megabits / 1000
        return {"id": identifier.strip(":"), "gbits": float(rate or 0), "mtu": mtu, "rdma": is_rdma}


def _text(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError:  # a device without a driver or a link has no such value
        return ""


def _number(path):
    text = _text(path)
    return int(text) if text.isdigit() else 0


def record(pair, devices, requested, peer):
    """Return the measurement with one partner, and the devices that sent at least half of its data."""
    before = devices.sent()
    found = pair.measure(peer)
    after = devices.sent()
    least = found.pop("sent") / 2
    carried = sorted(name for name, count in after.items() if count - before.get(name, count) > least)
    return dict(found, carried=carried, devices={name: devices.about(name) for name in sorted({*carried, *requested})})


def rounds_of(text):
    """Return the partner of each rank for each round."""
    partners = []
    for pairs in text.split("/"):
        both = [tuple(map(int, pair.split("-"))) for pair in pairs.split(",")]
        partners.append({**dict(both), **{second: first for first, second in both}})
    return partners


def _pair(mpi, options, stall):
    if not options["nccl"]:
        return MpiPair(mpi, options, stall)
    import dml_pairs_nccl

    return dml_pairs_nccl.NcclPair(mpi, options, stall)


def main(options):
    """Make all rounds, and write their records on rank 0."""
    mpi, stall = Mpi(options["library"]), Stall(options["stall"])
    stall.start()
    pair = _pair(mpi, options, stall)
    devices, requested = Devices(options["sysfs"]), options["devices"][mpi.rank]
    for number, partners in enumerate(rounds_of(options["rounds"])):
        found, peer = {}, partners.get(mpi.rank)
        if peer is not None:
            names = sorted((options["nodes"][mpi.rank], options["nodes"][peer]))
            stall.begin(f"the pair {names[0]} and {names[1]}")
            who = {"round": number, "node": options["nodes"][mpi.rank], "peer": options["nodes"][peer]}
            found = dict(record(pair, devices, requested, peer), host=platform.node(), **who)
            stall.pause()
        lines = [part for part in mpi.gather(json.dumps(found).encode()) if part != b"{}"]
        if mpi.rank == 0:
            with open(os.path.join(os.environ["DML_RECORDS"], "pairs.jsonl"), "ab") as file:
                file.write(b"".join(line + b"\n" for line in lines))
    mpi.end()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
