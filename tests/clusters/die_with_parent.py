"""Become another program that the kernel kills when the thread that started this one ends.

Run as ``python -I -S die_with_parent.py OWNER_PID PROGRAM [ARGUMENT ...]``. The death signal survives the
exec, reaches a frozen process too, and needs no cooperation from an owner that was itself killed with -9.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(owner: int, program: list[str]) -> None:
    """Replace this process by ``program``; end with a message when the owner is already gone."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_PDEATHSIG): {os.strerror(ctypes.get_errno())}")
    # The owner may have died before prctl took effect; no signal would follow then.
    if os.getppid() != owner:
        sys.exit(f"owner {owner} is gone, not starting {program[0]}")
    # Python ignores SIGPIPE and an ignored signal stays ignored across exec.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
