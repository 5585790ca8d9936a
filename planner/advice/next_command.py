"""The next command after a decision: every reason to hold has the one that ends it."""

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from planner.decision.decision import Decision, HoldCause
from planner.rollout.plan import DecisionRecord

_FIELD = re.compile(r"spec(?:\.[a-zA-Z]+)+")


@dataclass(frozen=True, slots=True)
class NextCommand:
    """A command, and what it is for or what comes before it, as few words; together they paste into a shell."""

    command: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.command}   # {self.note}" if self.note else self.command


class Commands(Protocol):
    """How the reader's next commands are spelt, by how the group was named: by a policy, or by an address."""

    @property
    def watch(self) -> str:
        """Watch the group for as long as its window asks for."""

    @property
    def doctor(self) -> str:
        """Examine the group."""

    def stated(self, fields: str, value: str = "") -> NextCommand:
        """Decide again once ``fields`` of the policy are stated, as ``value`` where only that helps."""

    @property
    def compare(self) -> NextCommand:
        """Compare all counts, or allow more of them."""

    @property
    def pods(self) -> NextCommand:
        """Decide again once it is known how many members each pod runs."""

    @property
    def proceed(self) -> str:
        """Go on with a decision that is right."""

    @property
    def settings(self) -> str:
        """Where a statement about the group is made."""

    @property
    def capacity(self) -> str:
        """Where it is stated what one consumer can do."""


@dataclass(frozen=True, slots=True)
class PolicyCommands:
    """Commands of somebody who has a policy file; ``snapshot`` is the snapshot's file, ``plan`` the plan's."""

    policy: str
    snapshot: str = "snap.json"
    plan: str = "plan.yaml"

    @property
    def watch(self) -> str:
        """A snapshot that watches for the policy's window."""
        return f"planner snapshot --policy {shlex.quote(self.policy)} -o {shlex.quote(self.snapshot)}"

    @property
    def doctor(self) -> str:
        """The doctor on the policy's group."""
        return f"planner doctor --policy {shlex.quote(self.policy)} --watch 60"

    @property
    def decide(self) -> str:
        """The same snapshot under the policy of today."""
        files = f"{shlex.quote(self.snapshot)} --policy {shlex.quote(self.policy)}"
        return f"planner plan {files} -o {shlex.quote(self.plan)}"

    def stated(self, fields: str, value: str = "") -> NextCommand:
        """Return the plan of the same snapshot once the policy states the fields."""
        return NextCommand(self.decide, f"after {fields} in {self.policy} {f'is {value}' if value else 'says it'}")

    @property
    def compare(self) -> NextCommand:
        """All counts of the snapshot."""
        return NextCommand(f"planner simulate {shlex.quote(self.snapshot)}", "shows what each count comes to")

    @property
    def pods(self) -> NextCommand:
        """The plan again; pods that can be read take a new snapshot."""
        step = self.stated("spec.membersPerPod")
        return NextCommand(step.command, f"{step.note}; or take a snapshot with spec.kubernetes there")

    @property
    def proceed(self) -> str:
        """The same again when the load has changed."""
        return self.watch

    @property
    def settings(self) -> str:
        """The policy file."""
        return self.policy

    @property
    def capacity(self) -> str:
        """The policy's field."""
        return f"spec.capacity.messagesPerSecond of {self.policy}"


@dataclass(frozen=True, slots=True)
class AddressCommands:
    """Commands of somebody who has an address alone: ``options`` are those of the present call, spelt as given.

    ``deployment`` is ``namespace/name``, ``kubeconfig`` how its API server is reached, where that was said.
    ``members_per_pod`` is what its pods and members suggest, ``larger_bound`` a bound above ``highest`` that allows
    further useful counts; ``None`` where there is none.
    """

    group: str
    server: str
    options: str = ""
    deployment: str | None = None
    highest: int | None = None
    kubeconfig: str | None = None
    members_per_pod: int | None = None
    larger_bound: int | None = None

    @property
    def _group(self) -> str:
        return f"{self.server} --group {shlex.quote(self.group)}"

    @property
    def _serving(self) -> str:
        return f" --deployment {shlex.quote(self.deployment)}{self._access}" if self.deployment else ""

    @property
    def _access(self) -> str:
        return f" --kubeconfig {shlex.quote(self.kubeconfig)}" if self.kubeconfig else ""

    @property
    def watch(self) -> str:
        """The same watch again."""
        return f"planner advise {self._group}{self._serving}{self.options}"

    @property
    def doctor(self) -> str:
        """The doctor on this group, which takes the namespace as an option of its own."""
        if self.deployment is None:
            return f"planner doctor {self._group} --watch 60"
        namespace, _, name = self.deployment.partition("/")
        serving = f"--deployment {shlex.quote(name)} --namespace {shlex.quote(namespace)}{self._access}"
        return f"planner doctor {self._group} {serving} --watch 60"

    def stated(self, fields: str, value: str = "") -> NextCommand:
        """Return how a policy is written, which has a field for what cannot be seen from outside."""
        return NextCommand(self.proceed, f"then state {fields} there{f' as {value}' if value else ''}, and plan by it")

    @property
    def compare(self) -> NextCommand:
        """The same watch with a larger bound, or why no count helps."""
        if self.larger_bound is None:
            return NextCommand(self.doctor, "names the queue or the members that limit it")
        return NextCommand(f"{self.watch} --max {self.larger_bound}", "allows more")

    @property
    def pods(self) -> NextCommand:
        """The same watch with the members a pod that are likely; what pods run where none are."""
        if self.members_per_pod is None:
            return NextCommand(
                self.doctor, "shows pods and members; --members-per-pod of planner advise states how many"
            )
        return NextCommand(f"{self.watch} --members-per-pod {self.members_per_pod}", "if each pod runs so many")

    @property
    def proceed(self) -> str:
        """A policy of the group, which plans and schedules go by."""
        most = f" --max {self.highest}" if self.highest else ""
        file = shlex.quote(_file_name(self.group))
        return f"planner init {self._group}{self._serving}{most}{self.options} -o {file}"

    @property
    def settings(self) -> str:
        """A policy that the reader does not have yet."""
        return "a policy, as planner init writes it"

    @property
    def capacity(self) -> str:
        """The option of the same watch."""
        return "--capacity"


def _file_name(group: str) -> str:
    """Return a policy's file name: a group's name may hold what no file name should."""
    return "".join(sign if sign.isalnum() or sign in "-_." else "-" for sign in group) + ".yaml"


def next_command(cause: HoldCause | None, commands: Commands, reason: str = "") -> NextCommand:
    """Return the one command that ends a hold, or that carries a decision on (``cause`` ``None``: it scales).

    ``reason`` is the decision's sentence: of a strategy that cannot be simulated it alone says what would mend that.
    """
    fields = list(dict.fromkeys(_FIELD.findall(reason)))
    if cause is HoldCause.UNSUPPORTED_STRATEGY and fields:
        return commands.stated(" or ".join(fields))
    return _STEPS[cause](commands)


def command_after_decision(decision: Decision, commands: Commands) -> NextCommand:
    """Return the next command after a decision."""
    return next_command(decision.hold_cause, commands, decision.reason)


def command_after_record(record: DecisionRecord) -> NextCommand:
    """Return the next command of somebody who has a decision's file: the policy's file goes by the policy's name."""
    return command_after_decision(record.decision, PolicyCommands(f"{record.policy}.yaml"))


_STEPS: Mapping[HoldCause | None, Callable[[Commands], NextCommand]] = {
    None: lambda commands: NextCommand(commands.proceed),
    HoldCause.RIGHT_ALREADY: lambda commands: NextCommand(commands.proceed, "nothing is to be changed today"),
    HoldCause.OLD_DATA: lambda commands: NextCommand(commands.watch, "data of now"),
    HoldCause.INCOMPLETE_DATA: lambda commands: NextCommand(commands.watch, "a watch as long as the window"),
    HoldCause.NO_CONSUMERS: lambda commands: NextCommand(commands.doctor, "says whether consumers run unseen"),
    HoldCause.MEMBERS_UNKNOWN: lambda commands: NextCommand(commands.doctor, "says what hides the members"),
    HoldCause.SEVERAL_DEPLOYMENTS: lambda commands: NextCommand(commands.doctor, "shows the pods and members of each"),
    HoldCause.UNKNOWN_PODS: lambda commands: commands.pods,
    HoldCause.UNEVEN_PODS: lambda commands: NextCommand(commands.doctor, "shows pods and members"),
    HoldCause.UNKNOWN_STRATEGY: lambda commands: NextCommand(
        commands.doctor,
        f"shows what the members run; where they own queues, a strategy that you know goes into spec.strategy of "
        f"{commands.settings}",
    ),
    HoldCause.UNSUPPORTED_STRATEGY: lambda commands: NextCommand(commands.doctor, "shows what the members run"),
    HoldCause.OTHER_LEVER: lambda commands: NextCommand(
        commands.doctor, "shows how far behind it is while you turn that"
    ),
    HoldCause.UNKNOWN_CAPACITY: lambda commands: NextCommand(
        commands.watch,
        f"while messages wait; a figure that you know goes into {commands.capacity}",
    ),
    HoldCause.REFUTED_CAPACITY: lambda commands: commands.stated(
        "spec.capacity.messagesPerSecond", "what one consumer really does"
    ),
    HoldCause.BLOCKED_QUEUES: lambda commands: NextCommand(commands.doctor, "names the queues that stand still"),
    HoldCause.COMMITS_WENT_BACK: lambda commands: NextCommand(commands.doctor, "names the members that went back"),
    HoldCause.SLOW_MEMBERS: lambda commands: NextCommand(commands.doctor, "names the members that are slow"),
    HoldCause.UNKNOWN_RATES: lambda commands: NextCommand(commands.watch, "rates take two samples of each queue"),
    HoldCause.UNKNOWN_LAG: lambda commands: NextCommand(commands.doctor, "names the queues without a stored offset"),
    HoldCause.UNSETTLED: lambda commands: NextCommand(commands.doctor, "shows who owns what, and whether it stays so"),
    HoldCause.RECENTLY_CHANGED: lambda commands: NextCommand(commands.watch, "after the rest that the policy asks for"),
    HoldCause.UNKNOWN_CHANGES: lambda commands: NextCommand(
        commands.watch, "watches for spec.stabilisation.seconds, too"
    ),
    HoldCause.STEP_LIMIT: lambda commands: commands.compare,
    HoldCause.OTHER_SCALER: lambda commands: commands.stated("spec.autoscaler.mode", "setBounds or pause"),
    HoldCause.GROWTH_DID_NOT_HELP: lambda commands: NextCommand(commands.doctor, "shows what the consumers wait for"),
    HoldCause.NO_COUNT_MEETS: lambda commands: commands.compare,
    HoldCause.SHARED_TARGET: lambda commands: NextCommand(
        commands.doctor, "shows this group; the sentence names the other"
    ),
    HoldCause.PLAN_REFUSED: lambda commands: NextCommand(commands.doctor, "shows pods and members"),
}
