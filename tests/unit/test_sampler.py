"""A standing sampler: what it reads, prints, keeps and leaves, and that one of it is enough for a folder."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.documents.policy import ConsumerScalingPolicy
from planner.errors import OutOfReachError, PlannerError
from planner.model.samples import GroupSample
from planner.runs import observe, sampler
from planner.runs.coverage import Coverage, read_coverage
from planner.runs.landed import newest_sample, read_sample
from planner.runs.sampler import Sampler, SamplerOptions
from planner.sources.live import Installation, Pace
from planner.storage.landing import reading_files, samples_of_reading
from planner.storage.layout import sampling_lock, sampling_record
from planner.storage.lock import kernel_lock
from tests.sample_builders import POLICY, START, watch
from tests.unit.cli.test_cli import planner, refused

(SAMPLE_OF_SHOP,) = watch(1)
Looks = Callable[[Installation], Iterator[tuple[ConsumerScalingPolicy, GroupSample | PlannerError]]]


@pytest.fixture
def options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SamplerOptions:
    """A fleet of one policy, and a sampler that is in a hurry."""
    monkeypatch.setattr(sampler, "NOTICE_S", 0.01)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "shop.yaml").write_text(POLICY, encoding="utf-8")
    return SamplerOptions(tmp_path / "policies", tmp_path / "data", 0.05, 3)


def landed(data: Path) -> list[GroupSample]:
    return [read_sample(sample) for path in reading_files(data) for sample in samples_of_reading(path)[0]]


def reading(monkeypatch: pytest.MonkeyPatch, looks: Looks) -> None:
    def watched(place: Installation, seconds: float, _pace: Pace) -> object:
        assert seconds == 0.0, "one look a period"
        return looks(place)

    monkeypatch.setattr(observe, "watch_installation", watched)


def into(said: list[str]) -> Callable[[str], None]:
    """Return what keeps the sentences that do not speak of the machine's own slowness."""
    return lambda sentence: None if "longer than the period" in sentence else said.append(sentence)


def until(done: Callable[[], bool]) -> Callable[[], bool]:
    """Return when a sampler is to end: once something is so, which ten minutes must be enough for."""
    limit = time.monotonic() + 600

    def is_over() -> bool:
        assert time.monotonic() < limit
        return done()

    return is_over


def test_a_group_that_fails_is_one_sentence_and_the_others_are_read_again_and_again(
    options: SamplerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when a failure is printed each period, ends the sampler, or keeps a neighbour from being read."""
    far = POLICY.replace("shop", "far").replace("9876", "9877")
    (options.policies / "far.yaml").write_text(far, encoding="utf-8")
    (options.policies / "typo.yaml").write_text("kind: [", encoding="utf-8")
    reads: list[str] = []

    def looks(place: Installation) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample | PlannerError]]:
        (policy,) = place.policies
        reads.append(policy.metadata.name)
        if policy.metadata.name == "far" and reads.count("far") < 4:
            yield policy, OutOfReachError("nobody answers at 127.0.0.1:9877")
        else:
            yield policy, SAMPLE_OF_SHOP

    reading(monkeypatch, looks)
    said: list[str] = []
    sampler_of_all = Sampler(options, into(said))
    assert "nothing was read yet" in str(sampler_of_all.why_not_ready())
    sampler_of_all.run(until(lambda: reads.count("far") > 4))
    assert reads.count("shop") > reads.count("far"), "an installation that is away is tried less and less often"
    assert len(said) == 3, said
    assert said[0].startswith("file typo.yaml: ")
    assert said[1].startswith("rocketmq DefaultCluster (127.0.0.1:9877): none of 1 group was read, tried again, every ")
    assert said[2] == "rocketmq DefaultCluster (127.0.0.1:9877) answers again"
    assert sampler_of_all.why_not_alive() is None
    assert landed(options.data) == [SAMPLE_OF_SHOP]
    assert [entry.group for entry in (read_coverage(options.data) or Coverage(0.0)).groups] == ["shop"]


def test_an_installation_that_hangs_holds_up_nobody_and_not_the_end(
    options: SamplerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = POLICY.replace("shop", "far").replace("9876", "9877")
    (options.policies / "far.yaml").write_text(far, encoding="utf-8")
    monkeypatch.setattr(sampler, "END_S", 0.1)
    reads: list[str] = []
    is_over: list[bool] = []

    def looks(place: Installation) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample | PlannerError]]:
        (policy,) = place.policies
        reads.append(policy.metadata.name)
        while policy.metadata.name == "far" and not is_over:
            time.sleep(0.01)
        yield policy, SAMPLE_OF_SHOP

    reading(monkeypatch, looks)
    Sampler(options, lambda _: None).run(until(lambda: reads.count("shop") > 5))
    is_over.append(True)
    assert reads.count("far") == 1


def test_policies_are_read_anew_and_a_folder_without_any_is_waited_for(
    options: SamplerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when an edit is not heard of, or when a ConfigMap that is replaced just now ends the sampler."""
    reads: list[str] = []
    path, said = options.policies / "shop.yaml", list[str]()

    def looks(place: Installation) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample | PlannerError]]:
        reads.append(place.policies[0].metadata.name)
        yield place.policies[0], SAMPLE_OF_SHOP

    def done() -> bool:
        if path.exists() and "shop" in reads:
            path.unlink()
        if any("holds no" in sentence or "no policy" in sentence for sentence in said) and "bank" not in reads:
            (options.policies / "bank.yaml").write_text(POLICY.replace("shop", "bank"), encoding="utf-8")
        return "bank" in reads

    reading(monkeypatch, looks)
    Sampler(options, into(said)).run(until(done))
    assert said[-1] == "policies and data folder can be used again"


def test_samples_that_nobody_came_for_go_and_an_earlier_samplers_reads_count(
    options: SamplerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red when the disk fills while no run comes, or when each new pod makes the next runs watch."""
    now = datetime.now(UTC)
    reading(monkeypatch, lambda place: iter([(place.policies[0], SAMPLE_OF_SHOP)]))
    assert now - timedelta(days=3) > START, "the sample of the builders is old"
    first = Sampler(options, lambda _: None)
    first.run(until(lambda: read_coverage(options.data) is not None))
    again = Sampler(options, lambda _: None)
    assert again._coverage == read_coverage(options.data)
    reading(monkeypatch, lambda place: iter([(place.policies[0], OutOfReachError("away"))]))
    again.run(until(lambda: not landed(options.data)))


def test_a_record_that_cannot_be_written_is_one_sentence_and_reading_goes_on(
    options: SamplerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder lies where the record belongs, until it is taken away."""
    record, said, reads = sampling_record(options.data), list[str](), list[str]()
    record.mkdir(parents=True)

    def looks(place: Installation) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample | PlannerError]]:
        reads.append(place.name)
        yield place.policies[0], SAMPLE_OF_SHOP

    def done() -> bool:
        if len(reads) == 5:
            record.rmdir()
            reads.append("the folder is gone")
        return record.is_file() and len(said) == 2

    reading(monkeypatch, looks)
    Sampler(options, into(said)).run(until(done))
    assert "sampling.json is a folder" in said[0]
    assert said[1:] == ["what was read is on record again"]


def test_one_file_holds_all_groups_of_a_reading_and_one_group_that_no_file_can_hold_stops_no_other(
    options: SamplerOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red with a file for each group, or where the longest name, or a client's odd id, costs its neighbours."""
    groups = ["shop", "bank", "b", "odd", "n" * 300]
    for group in groups:
        text = POLICY.replace("shop", group[:5]).replace(f"group: {group[:5]}", f"group: {group}")
        (options.policies / f"{group[:5]}.yaml").write_text(text, encoding="utf-8")

    def looks(place: Installation) -> Iterator[tuple[ConsumerScalingPolicy, GroupSample | PlannerError]]:
        for policy in place.policies:
            sample = replace(SAMPLE_OF_SHOP, group=policy.spec.source.group)
            problems = ("\ud800",) if sample.group == "odd" else ()
            yield policy, replace(sample, problems=problems)

    reading(monkeypatch, looks)
    _, (read,) = sampler.sample_once(replace(options, keep_days=3650))
    assert sorted(read.failures) == ["nnnnn", "odd"]
    assert len(list(reading_files(options.data))) == 1
    expected = [replace(SAMPLE_OF_SHOP, group=group) for group in ("b", "bank", "shop")]
    assert landed(options.data) == expected
    assert sorted(key[2] for key in read.times) == ["b", "bank", "shop"]
    newest = [newest_sample(options.data, key, START) for key in sorted(read.times)]
    assert newest == expected


def test_one_sampler_reads_for_a_folder_and_the_other_is_told_which(options: SamplerOptions) -> None:
    command = ("sample", "--policies", options.policies, "--data", options.data)
    with kernel_lock(sampling_lock(options.data), 0.0, "", ""):
        refused(planner(*command, "--once"), 3, f"data folder {options.data} are read by another sampler,", " process ")
        refused(planner(*command), 3, "one is enough for a folder: end that one first")
    refused(planner(*command, "--every", "1s"), 2, "found 1s, expected 5s or longer")
    (options.policies / "shop.yaml").unlink()
    refused(planner(*command), 2, f"{options.policies} holds no .yaml file")


def test_once_names_each_group_that_was_not_read(options: SamplerOptions) -> None:
    """On a port that nobody listens on."""
    (options.policies / "shop.yaml").write_text(POLICY.replace("9876", "1"), encoding="utf-8")
    (options.policies / "typo.yaml").write_text("kind: [", encoding="utf-8")
    found = planner("sample", "--policies", options.policies, "--data", options.data, "--once")
    assert (found.returncode, found.stdout) == (3, "0 groups of 1 installation read.\n")
    assert found.stderr.startswith("planner: 2 not read: shop: ")
    assert "typo.yaml: " in found.stderr
    assert read_coverage(options.data) is None
