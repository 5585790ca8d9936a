"""Become another program that the kernel kills when the thread that started this one ends.

Run as ``python -I -S tethered.py OWNER_PID REPORT_FD PROGRAM [ARGUMENT ...]``. The death signal survives
the exec, reaches a frozen process too, and needs no cooperation from an owner that was itself killed with
-9. ``REPORT_FD`` is closed unwritten by a successful exec; otherwise it carries what went wrong.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(owner: int, report: int, program: list[str]) -> None:
    """Replace this process by ``program``, or write to ``report`` why that was not possible."""
    os.set_inheritable(report, False)
    try:
        _die_with(owner)
        # Python ignores SIGPIPE, and an ignored signal stays ignored across exec.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.execvp(program[0], program)
    except OSError as error:
        os.write(report, f"{program[0]}: {error}".encode())
        sys.exit(1)


def _die_with(owner: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    # The owner may have died before prctl took effect; no signal would follow then.
    if os.getppid() != owner:
        raise ProcessLookupError(f"owner {owner} is gone")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
