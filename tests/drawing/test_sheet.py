"""Sheets of charts: every value in its place, and valid XML whatever the names."""

import math
from xml.etree import ElementTree

from vesper.drawing.sheet import HEIGHT, WIDTH, Curve, Panel, draw_sheet

SVG = "{http://www.w3.org/2000/svg}"


def sheet(*panels: Panel) -> ElementTree.Element:
    drawn = draw_sheet(panels, title="a < b", steps=(1.0, 2.0, math.inf), step_name="x & y")
    return ElementTree.fromstring(drawn)


def styled(tree: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [node for node in tree.iter() if (node.get("class") or "").split()[:1] == [name]]


def test_names_are_escaped_and_panels_are_placed() -> None:
    curve = Curve(name="<&>", color=3, points={1.0: (1.0, math.nan)})
    tree = sheet(*[Panel(title="p", curves=[curve])] * 4)
    assert {"<&>", "x & y", "∞"} <= {node.text for node in tree.iter(f"{SVG}text")}
    groups = [node.get("transform") for node in tree.iter(f"{SVG}g")]
    assert groups[:2] == ["translate(0,32)", f"translate({WIDTH:g},32)"]
    assert groups[3] == f"translate(0,{32 + HEIGHT:g})"


def test_a_band_is_as_wide_as_the_deviation() -> None:
    points = {1.0: (10.0, 2.0), 2.0: (20.0, 4.0), math.inf: (30.0, math.nan)}
    tree = sheet(Panel(title="p", curves=[Curve(name="c", color=0, points=points)]))
    (band,) = styled(tree, "band")
    corners = [tuple(map(float, pair.split(","))) for pair in (band.get("points") or "").split()]
    heights = [corners[3][1] - corners[0][1], corners[2][1] - corners[1][1]]
    assert abs(heights[1] / heights[0] - 2) < 0.05
    assert len(styled(tree, "dot")) == 3


def test_a_level_is_drawn_across_without_points() -> None:
    level = Curve(name="MLP", color=0, is_level=True, points={math.inf: (5.0, 1.0)})
    tree = sheet(Panel(title="p", curves=[level]))
    assert len(styled(tree, "level")) == 2
    assert len(styled(tree, "band")) == 1
    assert styled(tree, "dot") == []


def test_published_values_have_hollow_points() -> None:
    curve = Curve(name="c", color=1, points={}, published={1.0: (1.0, math.nan), 2.0: (2.0, 0.1)})
    tree = sheet(Panel(title="p", curves=[curve]))
    assert len(styled(tree, "hollow")) == 2
    assert len(styled(tree, "published")) == 2  # legend and panel


def test_bars_start_at_the_lowest_line() -> None:
    tree = sheet(Panel(title="p", curves=[], bars={1.0: 2.0, 2.0: 4.0}, bars_name="nodes"))
    first, second = styled(tree, "band")
    ratio = float(second.get("height") or 0) / float(first.get("height") or 1)
    assert abs(ratio - 2) < 0.01
    assert "nodes" in {node.text for node in tree.iter(f"{SVG}text")}


def test_a_sheet_without_panels_is_valid() -> None:
    assert sheet().tag == f"{SVG}svg"
