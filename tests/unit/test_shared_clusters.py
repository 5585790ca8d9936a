"""Shared clusters run from one file that needs them to the next, and no longer."""

from contextlib import ExitStack

from tests.sharing import SharedClusters


def test_what_the_next_file_needs_goes_on_and_all_else_is_stopped() -> None:
    told: list[str] = []

    def start(name: str, undo: ExitStack) -> str:
        told.append(f"start {name}")
        undo.callback(told.append, f"stop {name}")
        return name

    shared = SharedClusters()
    for name in ("kafka", "rocketmq", "kafka"):
        assert shared.get(name, lambda undo, name=name: start(name, undo)) == name
    shared.stop_all_but(["kafka", "unknown"])
    assert told == ["start kafka", "start rocketmq", "stop rocketmq"]
    shared.get("rocketmq", lambda undo: start("rocketmq", undo))
    shared.stop_all_but(())
    assert told[3] == "start rocketmq"
    assert sorted(told[4:]) == ["stop kafka", "stop rocketmq"]


def test_a_start_that_fails_leaves_nothing_behind() -> None:
    told: list[str] = []

    def fail(undo: ExitStack) -> str:
        undo.callback(told.append, "stopped")
        raise RuntimeError("no room")

    shared = SharedClusters()
    for _ in range(2):
        try:
            shared.get("kafka", fail)
        except RuntimeError:
            told.append("refused")
    assert told == ["stopped", "refused"] * 2


def test_what_is_started_later_is_stopped_too() -> None:
    told: list[str] = []
    shared = SharedClusters()
    later = shared.get("rocketmq", lambda undo: lambda version: undo.callback(told.append, f"stop {version}"))
    later("5.5.0")
    assert told == []
    shared.stop_all_but(())
    assert told == ["stop 5.5.0"]
