"""How long a run waits for each outcome."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """In seconds. The defaults are what we promise on a machine that runs nothing else."""

    quiet: float = 240.0
    """For programs to serve again and pods to run: after that something hangs."""
    agreement: float = 5.0
    """From quiet on, until all books have to agree (I3)."""
    standing: float = 10.0
    """Quiet moments, with others in between, in which the same difference may exist."""
    patience: float = 60.0
    """How long the books are read on: the finding then says how late they agreed."""
    operation: float = 240.0
    """For one operation, most of which are one call: more than a call to the local cluster may take."""
    healing: float = 240.0
    """For one fault: what was deleted has to be gone before it comes again. Also for all policies
    to be gone at the end."""
    room: float = 60.0
    """For pods that have room: kube-scheduler tries an unschedulable pod again after 10 s of backoff at most,
    or when something changes."""
    alarm: float = 45.0
    """For our own conditions to say that books agree: operators read what others have written; they report
    the end of a difference at their next round."""
    ordinary: float = 45.0
    """For a pod that asks for nothing of ours to get a node (I6): a lost leader leaves its Lease for 15 s,
    and its successor may do the same."""


DEADLINES = Deadlines()
