"""``planner sample``: a standing sampler, so that scheduled runs read only the past."""

import logging
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planner.cli.console import Format, FormatOption, Output, answering, check_output, errors, text_console
from planner.cli.rollouts import Kubeconfig
from planner.cli.run import period_s
from planner.errors import BadInputError, IncompleteError, OutOfReachError
from planner.text.words import duration

if TYPE_CHECKING:
    from planner.runs.sampler import SamplerOptions

LEAST_S: Final = 5
"""As often as a run's own watch reads; more often gives nothing that a decision rests on."""

KEEP_DAYS: Final = 3
"""A window of a day reaches back over gaps so far."""


def sample(
    policies: Annotated[
        str,
        typer.Option(
            "--policies",
            "-p",
            metavar="FOLDER|k8s://NAMESPACE",
            help="Folder of ConsumerScalingPolicy files, or a namespace that holds them as objects.",
            show_default=False,
        ),
    ],
    data: Annotated[
        Path, typer.Option(help="Data folder of the runs that look back at the samples.", show_default=False)
    ],
    every: Annotated[str, typer.Option(help="How often each installation is read: 30s, 1m; 5s at least.")] = "60s",
    once: Annotated[bool, typer.Option("--once", help="Read once and end, for cron; --every says how often.")] = False,
    keep_days: Annotated[
        int, typer.Option(min=1, help="Days after which a sample goes that no run has packed or removed.")
    ] = KEEP_DAYS,
    health_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Port of /healthz and /readyz.", show_default="none")
    ] = None,
    listen_address: Annotated[
        str, typer.Option(help="Where that port is opened, for example the pod's own address.")
    ] = "0.0.0.0",  # noqa: S104  a pod is asked from outside of it
    kubeconfig: Kubeconfig = None,
    form: FormatOption = None,
    output: Output = None,
) -> None:
    """Read every policy's group once a period, so that runs look back and decide at once instead of watching.

    An installation is read in one go, whatever the number of its groups; a reading is one file. Policies
    are read anew each period. What cannot be read is one sentence, and the others go on. One sampler at a time reads
    for a data folder. SIGTERM ends it once the reads that go on are done.

    Exit codes: 0 told to end, or --once read all; 1 with --once: some were not read; 2 no policy can be used, bad
    options; 3 another sampler reads for the folder, it cannot be written, or with --once: not one group was read.
    """
    from planner.policies.fleet import policy_location
    from planner.runs.sampler import SamplerOptions
    from planner.storage.layout import sampling_lock
    from planner.storage.lock import kernel_lock

    check_output(form, output)
    if not once and (form is not None or output is not None):
        raise BadInputError(
            "planner sample: --format and --output belong to --once: a sampler that goes on writes samples"
        )
    every_s = period_s(every)
    if every_s < LEAST_S:
        raise BadInputError(f"option --every: found {every}, expected {LEAST_S}s or longer")
    location = policy_location(policies, kubeconfig)
    options = SamplerOptions(location, data, every_s, keep_days, kubeconfig)
    busy = f"the groups of data folder {data} are read by another sampler,"
    advice = "one is enough for a folder: end that one first, or name another --data"
    with kernel_lock(sampling_lock(data), time.monotonic(), busy, advice), _quiet_reads():
        if once:
            _sample_once(options, form, output)
        else:
            _sample_on(options, policies, health_port, listen_address)


@contextmanager
def _quiet_reads() -> Iterator[None]:
    """Suppress the warnings of each single read: the sampler has one sentence for what changes."""
    logger = logging.getLogger("planner.sources.live")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _sample_once(options: "SamplerOptions", form: Format | None, output: str | None) -> None:
    """Print how many groups were read. Raises ``IncompleteError`` or ``OutOfReachError`` that names the others."""
    from planner.runs.sampler import sample_once
    from planner.text.words import counted

    refused, reads = sample_once(options)
    failures = dict(refused) | {name: str(error) for read in reads for name, error in read.failures.items()}
    count = sum(len(read.times) for read in reads)
    with answering(form, output) as answer:
        if answer.is_text:
            read = f"{counted(count, 'group')} of {counted(len(reads), 'installation')} read."
            text_console().print(read, soft_wrap=True)
        else:
            notes = [{"name": name, "reason": reason} for name, reason in sorted(failures.items())]
            answer.write("SampleSummary", {"groups": count, "installations": len(reads), "failures": notes})
    if failures:
        reasons = "; ".join(f"{name}: {reason.rstrip('.')}" for name, reason in sorted(failures.items()))
        raise (IncompleteError if count else OutOfReachError)(f"{len(failures)} not read: {reasons}.")


def _sample_on(options: "SamplerOptions", policies: str, health_port: int | None, address: str) -> None:
    """Read until SIGTERM or Ctrl-C."""
    from planner.runs.sampler import Sampler

    signals: list[int] = []
    # A handler must take no lock, which the thread that it interrupts may hold.
    before = [(number, signal.signal(number, lambda got, _: signals.append(got))) for number in _END_SIGNALS]
    try:
        sampler = Sampler(options, _print_line)
        what = f"reading the groups of {policies} every {duration(options.every_s)} into {options.data}"
        if health_port is None:
            _print_line(what)
        else:
            from planner.controller.health import serve_health

            server = serve_health(address, health_port, sampler.why_not_alive, sampler.why_not_ready)
            _print_line(f"{what}, health on port {server.server_port}")
        sampler.run(lambda: bool(signals))
        _print_line("asked to stop: all that was read is written")
    finally:
        for number, handler in before:
            signal.signal(number, handler)


_END_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


def _print_line(sentence: str) -> None:
    """Print a sentence with its time on standard error."""
    errors.print(f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {sentence}", soft_wrap=True)
