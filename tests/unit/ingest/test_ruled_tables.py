from ingest.parsers.ruled_tables import Segment, find_tables


def box(left, bottom, right, top):
    return [
        Segment(left, bottom, right, bottom),
        Segment(left, top, right, top),
        Segment(left, bottom, left, top),
        Segment(right, bottom, right, top),
    ]


def shape(table):
    return [[None if c is None else (c.left, c.top) for c in row] for row in table.rows]


def test_lines_that_cross_make_cells_in_reading_order():
    across = [Segment(0, y, 30, y) for y in (0, 10, 20)]
    down = [Segment(x, 0, x, 20) for x in (0, 15, 30)]
    [table] = find_tables(across + down)
    assert [[(0, 20), (15, 20)], [(0, 10), (15, 10)]] == shape(table)


def test_boxes_that_touch_are_one_table():
    cells = [box(x, y, x + 20, y + 10) for x in (0, 20) for y in (0, 10)]
    [table] = find_tables(side for cell in cells for side in cell)
    assert (2, 2) == (len(table.rows), len(table.rows[0]))


def test_lines_that_nearly_coincide_are_one():
    across = [Segment(0, y, 30, y) for y in (0, 0.8, 10, 10.9, 20)]
    down = [Segment(x, 0, x, 20) for x in (0, 15, 30)]
    [table] = find_tables(across + down)
    assert (2, 2) == (len(table.rows), len(table.rows[0]))


def test_a_cell_that_spans_columns_leaves_a_gap():
    lines = box(0, 0, 40, 10) + box(0, 10, 40, 20) + [Segment(20, 0, 20, 10)]
    [table] = find_tables(lines)
    assert [[(0, 20), None], [(0, 10), (20, 10)]] == shape(table)


def test_tables_apart_stay_apart():
    cells = [box(x, y, x + 20, y + 10) for x in (0, 20) for y in (0, 10, 100, 110)]
    tables = find_tables(side for cell in cells for side in cell)
    assert [120, 20] == [t.box.top for t in tables]


def test_a_frame_and_rules_between_paragraphs_are_no_table():
    assert [] == find_tables([*box(0, 0, 100, 100), Segment(10, 50, 90, 50)])
