from dataclasses import replace

from planner.report.grid import COLUMNS, MOST_CELLS, MOST_FOLDED, Cell, Grid, grids, key
from tests import builders
from tests.report import worlds


def cells(grid: Grid) -> dict[tuple[str, str, int], Cell]:
    return {
        (row.topic, row.broker, cell.queue_id): cell
        for row in grid.rows
        for line in row.lines
        for cell in line.cells
        if cell is not None
    }


def test_every_queue_is_a_cell_lettered_by_its_owner_before_and_after() -> None:
    case = worlds.case(worlds.growing())
    before, after = grids(case).pictures
    for picture, owners in ((before, case.owners_now), (after, case.owners_then)):
        drawn = cells(picture)
        assert {(q.topic, q.broker, q.queue_id): case.marks[owner] for q, owner in owners.items()} == {
            name: cell.mark for name, cell in drawn.items()
        }


def test_moved_queues_are_marked_on_both_sides_with_the_other_owner() -> None:
    case = worlds.case(worlds.growing())
    before, after = (cells(picture) for picture in grids(case).pictures)
    moved = {(q.topic, q.broker, q.queue_id) for q in case.moved}
    assert moved
    assert {name for name, cell in before.items() if cell.other} == moved
    assert {name for name, cell in after.items() if cell.other} == moved
    assert all(after[name].other == before[name].mark for name in moved)


def test_the_case_shown_lies_within_the_exact_range() -> None:
    for world in (worlds.growing(), worlds.shrinking(), worlds.large()):
        case = worlds.case(world)
        assert case.chosen is not None
        assert (case.chosen.moved_fewest or 0) <= grids(case).moved <= (case.chosen.moved_most or 0)


def test_a_hold_has_one_picture() -> None:
    assert [picture.title for picture in grids(worlds.case(worlds.holding())).pictures] == ["Now"]


def test_unowned_queues_are_counted_and_carry_nobodys_mark() -> None:
    taken = builders.snapshot()
    orphaned = (replace(taken.queues[0], owner=None), *taken.queues[1:])
    drawn = grids(worlds.case(builders.decided(replace(taken, queues=orphaned))))
    first = drawn.pictures[0].rows[0].lines[0].cells[0]
    assert drawn.unowned == 1
    assert first is not None
    assert (first.mark.code, first.mark.colour) == ("–", -1)


def test_long_rows_go_on_below_and_holes_are_not_drawn() -> None:
    queues = [queue for queue in builders.queues(brokers=("b",), each=200) if queue.queue_id in (0, 17, 199)]
    (picture,) = grids(worlds.case(builders.decided(builders.snapshot(queues, capacity=None)))).pictures
    assert [line.first for line in picture.rows[0].lines] == [0, 16, 192]
    assert all(len(line.cells) == COLUMNS for line in picture.rows[0].lines)


def test_nothing_is_hidden_silently() -> None:
    brokers = [f"broker-{number:03}" for number in range(100)]
    queues = builders.queues(brokers=brokers, each=70)
    drawn = grids(worlds.case(builders.decided(builders.snapshot(queues, capacity=None))))
    shown = sum(row.queues for row in drawn.pictures[0].rows)
    assert shown <= MOST_CELLS
    assert shown + sum(row.queues for row in drawn.folded) == drawn.queues == 7000
    assert len(drawn.folded) == MOST_FOLDED + 1


def test_the_key_counts_queues_now_and_after() -> None:
    case = worlds.case(worlds.growing())
    people = key(case)
    assert [person.mark.code for person in people] == ["A", "B", "C", "+1", "+2", "+3"]
    assert sum(int(person.queues_now) for person in people[:3]) == 22
    assert sum(int(person.queues_then) for person in people) == 22
    assert people[3].queues_now == "–"


def test_those_who_stop_have_a_dash_after() -> None:
    people = key(worlds.case(worlds.shrinking()))
    assert [person.queues_then for person in people].count("–") == 3
