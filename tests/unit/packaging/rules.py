"""What we ask of a Dockerfile, one function a rule: each yields what breaks it."""

import re
from collections.abc import Callable, Iterator

from tests.unit.packaging.dockerfile import Dockerfile, sources

BUILD = frozenset({"ARG", "COPY", "FROM", "RUN", "SHELL", "WORKDIR"})
MEANS = frozenset({"CMD", "ENTRYPOINT", "ENV", "HEALTHCHECK", "LABEL", "STOPSIGNAL", "USER"})
INSTRUCTIONS = BUILD | MEANS
"""Those that we use; ADD fetches and unpacks behind one's back."""

Rule = Callable[[Dockerfile], Iterator[str]]


def only_known_instructions(file: Dockerfile) -> Iterator[str]:
    for stage in file.stages:
        for one in stage.instructions:
            if one.keyword not in INSTRUCTIONS:
                yield f"line {one.line}: {one.keyword} is not used here"


def bases_are_arguments_without_default(file: Dockerfile) -> Iterator[str]:
    named = {stage.name for stage in file.stages}
    for stage in file.stages:
        found = re.fullmatch(r"\$\{([A-Z_]+)\}", stage.base)
        if stage.base not in named and not (found and found[1] in file.arguments):
            yield f"FROM {stage.base}: a base is an argument without a default"


def bases_are_checked_for_a_digest(file: Dockerfile) -> Iterator[str]:
    checks = [text for stage in file.stages for text in stage.all("RUN") if "check_base.sh" in text]
    for argument in file.arguments:
        if not any(f'"${{{argument}}}"' in check for check in checks):
            yield f"{argument} is never checked for a digest"


def the_user_is_a_number_and_not_root(file: Dockerfile) -> Iterator[str]:
    users = file.image.all("USER")
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]):
        yield f"USER is {users[-1:]}: expected UID:GID, neither of them 0"
    after = [one.keyword for one in file.image.instructions]
    if "USER" in after and {"RUN", "COPY"} & set(after[after.index("USER") :]):
        yield "USER comes before a RUN or COPY: the program could change itself"


def programs_are_in_exec_form(file: Dockerfile) -> Iterator[str]:
    for keyword in ("ENTRYPOINT", "CMD", "SHELL"):
        for stage in file.stages:
            for text in stage.all(keyword):
                if not text.startswith("["):
                    yield f"{keyword} {text}: a shell would stand between SIGTERM and the program"
    if len(file.image.all("ENTRYPOINT")) != 1:
        yield "the image has no ENTRYPOINT, or several"


def the_end_and_the_health_are_said(file: Dockerfile) -> Iterator[str]:
    for keyword, expected in (("STOPSIGNAL", "SIGTERM"), ("HEALTHCHECK", "NONE")):
        if file.image.all(keyword) != [expected]:
            yield f"{keyword} is {file.image.all(keyword)}, expected {expected}"


def nothing_comes_without_a_hash(file: Dockerfile) -> Iterator[str]:
    for stage in file.stages:
        for text in stage.all("RUN"):
            if re.search(r"\b(pip3?|uv|apt|apt-get|apk|curl|wget|git|npm)\b", text):
                yield f"RUN {text}: packages come by install.sh alone, by their hashes"
        for text in stage.all("COPY"):
            if "://" in text:
                yield f"COPY {text}: nothing comes over the network"


def copies_are_named_one_by_one(file: Dockerfile) -> Iterator[str]:
    for stage in file.stages:
        for text in stage.all("COPY"):
            if any(word in (".", "./", "*") for word in sources(text)):
                yield f"COPY {text}: name what it takes"


def no_secret_is_kept(file: Dockerfile) -> Iterator[str]:
    for stage in file.stages:
        for text in (*stage.all("ARG"), *stage.all("ENV")):
            if re.search(r"(?i)passw|secret|token|credential|api_?key", text):
                yield f"{text}: arguments and environment stay in the image for everybody to read"


def the_image_says_what_it_is(file: Dockerfile) -> Iterator[str]:
    labels = " ".join(file.image.all("LABEL"))
    for name in ("title", "description", "licenses", "version", "revision"):
        if f"org.opencontainers.image.{name}=" not in labels:
            yield f"no label org.opencontainers.image.{name}"


RULES: tuple[Rule, ...] = (
    only_known_instructions,
    bases_are_arguments_without_default,
    bases_are_checked_for_a_digest,
    the_user_is_a_number_and_not_root,
    programs_are_in_exec_form,
    the_end_and_the_health_are_said,
    nothing_comes_without_a_hash,
    copies_are_named_one_by_one,
    no_secret_is_kept,
    the_image_says_what_it_is,
)
