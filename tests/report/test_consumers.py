from planner.report.consumers import COLOURS, NOBODY, Marks, letters


def test_letters_go_on_after_z() -> None:
    assert [letters(n) for n in (0, 25, 26, 27, 51, 52, 701, 702)] == ["A", "Z", "AA", "AB", "AZ", "BA", "ZZ", "AAA"]


def test_codes_are_unique_however_many_consumers() -> None:
    marks = Marks([f"c{n:04}" for n in range(1000)], [f"new consumer {n}" for n in range(1, 500)])
    assert len({mark.code for mark in marks}) == 1499


def test_running_consumers_keep_code_and_colour_whoever_joins_or_leaves() -> None:
    running = ["a", "b", "c"]
    alone, joined, shrunk = Marks(running, running), Marks(running, [*running, "new consumer 1"]), Marks(running, ["b"])
    assert [alone[c] for c in running] == [joined[c] for c in running] == [shrunk[c] for c in running]


def test_newcomers_are_marked_as_new_and_go_on_in_colour() -> None:
    mark = Marks([f"c{n}" for n in range(COLOURS)], ["new consumer 1"])["new consumer 1"]
    assert (mark.code, mark.colour, mark.is_new) == ("+1", 0, True)


def test_nobody_has_a_mark_of_its_own() -> None:
    assert Marks(["a"], [])[None] is NOBODY


def test_a_name_outside_the_case_is_shown_as_unknown_not_as_somebody() -> None:
    assert Marks(["a"], [])["stranger"].code == "?"
