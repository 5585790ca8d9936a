"""Samples that have landed below the data folder, and files there that cannot be used."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.storage.landing import (
    LandedSample,
    landed_at,
    misnamed_files,
    reading_files,
    sample_files,
    samples_of_reading,
    set_aside,
    set_reading_aside,
)


def find_landed(data: Path, until: str) -> tuple[list[LandedSample], dict[str, str]]:
    """Return the samples that landed up to ``until``, and why files were set aside, by path."""
    aside = {str(path): set_aside(path, f"{path} is not named like a sample") for path in misnamed_files(data)}
    landed: list[LandedSample] = []
    for path in reading_files(data):
        samples, fault = samples_of_reading(path)
        if fault is not None:
            aside[str(path)] = set_reading_aside(data, path, samples, fault)
        else:
            landed.extend(samples)
    landed.extend(sample_files(data))  # with those that had to leave a reading just now
    return [sample for sample in landed if sample.time_name <= until], aside


def set_unusable_aside(data: Path, landed: Sequence[LandedSample], reasons: Mapping[str, str]) -> Mapping[str, str]:
    """Set files aside that cannot be used, or that hold what cannot be; return why, by path."""
    by_path: dict[Path, list[str]] = {}
    for location, reason in reasons.items():
        by_path.setdefault(landed_at(location).path, []).append(reason)
    sentences = {}
    for path, of_path in by_path.items():
        more = f" (one of {len(of_path)})" if len(of_path) > 1 else ""
        of_reading = [sample for sample in landed if sample.path == path and sample.line is not None]
        whole = [sample for sample in of_reading if sample.location not in reasons]
        sentences[str(path)] = set_reading_aside(data, path, whole, f"{of_path[0]}{more}")
    return sentences
