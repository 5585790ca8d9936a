"""What a controller is told, by options and by the environment."""

from pathlib import Path

import pytest

from planner.controller import main
from planner.controller.settings import LogFormat, LogLevel, Settings, choose_lease_namespace, chosen_namespaces
from planner.errors import BadInputError


@pytest.mark.parametrize(
    ("named", "is_all", "found"),
    [(["a,b"], False, ("a", "b")), (["a", " b ,a"], False, ("a", "b")), ([], True, ())],
)
def test_namespaces_are_named_or_all(named: list[str], is_all: bool, found: tuple[str, ...]) -> None:
    assert chosen_namespaces(named, is_all) == found


@pytest.mark.parametrize(("named", "is_all"), [([], False), ([","], False), (["a"], True)])
def test_both_or_neither_is_refused(named: list[str], is_all: bool) -> None:
    with pytest.raises(BadInputError, match="--namespace a,b, or say --all-namespaces"):
        chosen_namespaces(named, is_all)


def test_the_leases_place_is_the_named_one_the_pods_own_or_the_first(tmp_path: Path) -> None:
    own = tmp_path / "namespace"
    assert choose_lease_namespace(None, ("a", "b"), own) == "a"
    with pytest.raises(BadInputError, match="--leader-namespace"):
        choose_lease_namespace(None, (), own)
    own.write_text("planner\n")
    assert choose_lease_namespace(None, ("a", "b"), own) == "planner"
    assert choose_lease_namespace("named", (), own) == "named"


def test_the_environment_says_the_same_as_options(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Settings] = []
    monkeypatch.setattr(main, "run", told.append)
    options = ["--namespace", "a,b", "--leader-namespace", "c", "--leader-lease", "d", "--health-port", "1"]
    options += ["--metrics-port", "2", "--log-format", "text", "--log-level", "debug", "--workers", "3"]
    options += ["--kubeconfig", "k", "--data", "l"]
    main.app(options, standalone_mode=False)
    variables = {option.removeprefix("--"): value for option, value in zip(options[::2], options[1::2], strict=True)}
    for name, value in variables.items():
        monkeypatch.setenv(f"PLANNER_{name.upper().replace('-', '_')}", value)
    main.app([], standalone_mode=False)
    by_option, by_environment = told
    assert by_option == by_environment
    assert (by_option.namespaces, by_option.log_format, by_option.log_level) == (
        ("a", "b"),
        LogFormat.TEXT,
        LogLevel.DEBUG,
    )
    assert by_option.data == Path("l")


def test_a_bad_option_is_one_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["planner-controller"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 2
    said = "planner-controller: none was given: name the namespaces by --namespace a,b, or say --all-namespaces\n"
    assert capsys.readouterr().err == said
