"""The HTML report: what it holds, and that nothing in it can act or load anything."""

import base64
import hashlib
import json
import re
from array import array
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from aclbroker.pipeline.interface.result import Chart, JobResult, Table
from aclbroker.pipeline.report.content import Column
from aclbroker.pipeline.report.html import page
from tests.pipeline.report.examples import (
    ENDING,
    HOSTILE,
    MARKUP,
    MATRIX,
    REPORT,
    WHAT_IF,
    written,
)

VOID = {"meta", "wbr"}


class Node:
    def __init__(self, tag: str, attributes: dict[str, str | None], parent: "Node | None") -> None:
        self.tag, self.attributes, self.parent = tag, attributes, parent
        self.children: list[Node | str] = []

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str | None = None, **attributes: str) -> "list[Node]":
        found = []
        for child in self.children:
            if isinstance(child, Node):
                wanted = {key.rstrip("_"): value for key, value in attributes.items()}
                matches = all(child.attributes.get(key) == wanted[key] for key in wanted)
                if tag in (None, child.tag) and matches:
                    found.append(child)
                found += child.all(tag, **attributes)
        return found

    def one(self, tag: str | None = None, **attributes: str) -> "Node":
        (found,) = self.all(tag, **attributes)
        return found


class Tree(HTMLParser):
    """Parses strictly: whatever is opened must be closed, in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.at = self.root = Node("", {}, None)
        self.feed(html)
        self.close()
        assert self.at is self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs)
        node = Node(tag, dict(attrs), self.at)
        self.at.children.append(node)
        if tag not in VOID:
            self.at = node

    def handle_endtag(self, tag: str) -> None:
        assert self.at.tag == tag
        assert self.at.parent is not None
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.children.append(data)


@pytest.fixture(scope="module")
def html() -> str:
    return page(REPORT)


@pytest.fixture(scope="module")
def root(html: str) -> Node:
    return Tree(html).root


def test_it_holds_no_element_or_attribute_that_could_act_or_load(html: str, root: Node):
    nodes = root.all()
    assert {node.tag for node in nodes}.isdisjoint(
        {"img", "iframe", "link", "object", "embed", "base", "form", "image", "use"}
    )
    names = {name for node in nodes for name in node.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert names.isdisjoint({"src", "style", "srcset", "xlink:href"})
    links = {node.attributes["href"] for node in nodes if "href" in node.attributes}
    assert links
    assert all(link is not None and link.startswith(("#", "./")) for link in links)
    assert not re.search(r"https?:|//|url\(|@import", root.one("style").text)


def test_browsers_are_told_to_load_nothing_and_to_use_this_style_and_script_alone(root: Node):
    policy = root.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    (script,) = programs(root)
    style, code = (
        base64.b64encode(hashlib.sha256(each.text.encode()).digest()).decode()
        for each in (root.one("style"), script)
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert f"style-src 'sha256-{style}'; script-src 'sha256-{code}'; " in policy
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy


def programs(root: Node) -> list[Node]:
    """The scripts that browsers run: all that are not said to be data."""
    scripts = root.all("script")
    found = [each for each in scripts if each.attributes.get("type") != "application/json"]
    assert all(each.attributes == {} for each in found)
    return found


def test_no_script_has_anything_of_the_log(root: Node):
    (script,) = programs(root)
    other = Tree(page(replace(REPORT, results=[MATRIX], clusters=[], command=""))).root
    assert programs(other)[0].text == script.text


def test_no_name_ends_the_data_that_it_is_in(html: str, root: Node):
    names = {column["name"]: column for column in data_of(root, "what-if/flips")["columns"]}
    assert set(names["principal"]["values"]) >= {MARKUP, ENDING}
    assert (
        "x\\n[2026-01-01 00:00:00,000] DEBUG Principal = User:mallory\\x1b[2J"
        in (names["principal"]["values"])
    )
    raw = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert raw
    assert not any(char in text for text in raw for char in "<>&\n\u2028")


def data_of(root: Node, name: str) -> dict[str, Any]:
    """The rows of a whole table that are in the page for its script."""
    whole = root.one("details", id=f"rows-{name.replace('/', '-')}")
    found: dict[str, Any] = json.loads(whole.one("script").text)
    return found


def test_a_whole_table_has_all_its_rows_as_data_and_its_first_ones_without_a_script(root: Node):
    whole = root.one("details", id="rows-what-if-flips")
    assert whole.one("summary").text == "what-if/flips first 128 of 812"
    columns = data_of(root, "what-if/flips")["columns"]
    assert [column["name"] for column in columns] == [
        "principal", "operation", "resource type", "resource name", "direction", "flipped events",
        "removed",
    ]  # fmt: skip
    values, codes = columns[5]["values"], columns[5]["codes"]
    assert [values[code] for code in codes] == list(range(1_000, 1_000 - 128, -1))
    assert {column["kind"] for column in columns} == {"name", "number"}
    assert len(_rows(root, "what-if/flips")) == 10
    assert "The first 10 of 812. The rest is in the file." in whole.text
    files = ["./what-if/flips.csv", "./what-if/flips/"]
    assert [link.attributes["href"] for link in whole.all("a")] == files
    links = root.one("section", id="job-what-if").one("span", class_="every").all("a")
    assert [each.attributes["href"] for each in links] == ["#rows-what-if-flips", *files]


def test_a_table_that_is_too_large_for_the_page_says_how_much_of_it_is_there():
    rows = [(f"User:{at}" + "x" * 200, at) for at in range(60_000)]
    table = written(["principal", "events"], [])
    table = replace(table, columns=[
        Column(name, [row[at] for row in rows], array("i", range(len(rows))))
        for at, name in enumerate(["principal", "events"])
    ], total=70_000)  # fmt: skip
    result = replace(MATRIX, outputs={"matrix/use": "use"})
    html = page(replace(REPORT, results=[result], stored={"matrix/use": table}))
    root = Tree(html).root
    assert len(data_of(root, "matrix/use")["columns"][0]["codes"]) == 30_000
    assert "first 30,000 of 70,000" in root.one("details", id="rows-matrix-use").text
    assert len(html) < 9_000_000


def test_files_are_linked_by_their_place_beside_the_page():
    result = replace(MATRIX, outputs={"unused/remaining-a%2Fb c.yaml": "ACLs"})
    root = Tree(page(replace(REPORT, results=[result]))).root
    (link,) = root.one("section", id="job-matrix").all("a")
    assert link.attributes["href"] == "./unused/remaining-a%252Fb%20c.yaml"


def test_the_page_begins_with_what_is_at_risk(root: Node):
    first = next(node for node in root.one("main").children if isinstance(node, Node))
    assert first.attributes["id"] == "risk"
    lines = [
        (
            line.attributes["class"],
            line.one("b", class_="value").text,
            line.one("div").one("b").text,
        )
        for line in first.one("ul", class_="risks").all("li")
    ]
    assert lines == [("high", "5,811", "newly denied"), ("none", "0", "newly allowed")]


def test_what_several_jobs_looked_for_and_did_not_find_is_one_line():
    found = [replace(WHAT_IF, job=job, alarms={"drift": 0}) for job in ("what-if", "diff")]
    root = Tree(page(replace(REPORT, results=found))).root
    (line,) = (
        each
        for each in root.one("section", id="risk").one("ul", class_="risks").all("li")
        if each.one("div").one("b").text == "drift"
    )
    jobs = [each.attributes["href"] for each in line.all("a")]
    assert jobs == ["#job-what-if", "#job-diff"]


def test_a_page_without_rules_and_proposals_has_no_risks():
    root = Tree(page(replace(REPORT, results=[MATRIX], clusters=[]))).root
    assert root.all("section", id="risk") == []


def test_a_matrix_has_shades_and_each_number_its_operation():
    table = Table("M", ["Principal", "READ", "WRITE"], [("a", 1_000_000, 0), ("b", 30, 7)], 2,
                  matrix=True)  # fmt: skip
    root = Tree(page(replace(REPORT, results=[replace(MATRIX, tables=[table])]))).root
    cells = _table(root, "M").one("tbody").all("td")
    assert [cell.text for cell in cells] == ["1M", "·", "30", "7"]
    assert [cell.attributes["class"] for cell in cells] == [
        "number h5", "number h0", "number h2", "number h1"
    ]  # fmt: skip
    assert [cell.attributes["data-l"] for cell in cells] == ["READ", "WRITE", "READ", "WRITE"]
    assert cells[0].attributes["title"] == "READ: 1,000,000"


def test_every_link_leads_somewhere_and_no_id_is_there_twice(root: Node):
    ids = [node.attributes["id"] for node in root.all() if "id" in node.attributes]
    assert len(set(ids)) == len(ids)
    links = {str(node.attributes["href"]) for node in root.all("a")}
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    contents = root.one("nav").all("a")
    assert [link.attributes["href"] for link in contents] == [
        "#risk", "#answers", "#job-what-if", "#job-matrix", "#about"
    ]  # fmt: skip


def test_names_of_clients_are_shown_with_their_control_characters_as_escapes(html: str, root: Node):
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", html)
    names = [row.one("th").text for row in _rows(root, "Newly denied")]
    assert names == [
        "User:alice",
        '<script>alert("1")</script>',
        "x\\n[2026-01-01 00:00:00,000] DEBUG Principal = User:mallory\\x1b[2J",
        "User:\\u202egnp.exe",
        "a&amp;b",
        "' onload='x",
        "\\u2028",
        "CORP\\\\n",
    ]


def test_an_escape_is_marked_so_that_no_name_can_look_like_one(root: Node):
    assert {node.text for node in root.all("span", class_="esc")} >= {"\\n", "\\x1b", "\\u202e"}


def test_all_results_are_there(root: Node):
    for result in (WHAT_IF, MATRIX):
        section = root.one("section", id=f"job-{result.job}")
        assert section.one("h2").text == result.title
        assert section.one("p", class_="lead").text == result.summary
    section = root.one("section", id="job-what-if")
    figures = [
        tuple(part.text for part in tile.all() if part.tag in ("dt", "dd"))
        for tile in section.one("dl", class_="facts").all("div")
    ]
    assert figures == [
        ("events newly denied", "5,811", "of 950,122"), ("share", "0.250"), ("first", "")
    ]  # fmt: skip
    warnings = [node.text for node in section.all("div", role="note")]
    assert warnings == list(WHAT_IF.warnings)
    written = section.all("dl", class_="files")[-1]
    assert written.one("dt").text == "what-if/flips"
    assert written.one("dd").text == "every question whose decision changes"


def test_the_first_thing_shown_is_the_window_with_its_counts_and_all_warnings(root: Node):
    section = root.one("section", id="answers")
    first, second = [node for node in section.children if isinstance(node, Node)][:2]
    facts = {tile.one("dt").text: tile.all("dd")[0].text for tile in first.all("div")}
    assert facts == {
        "in the log": "30 days",
        "events": "1,000,000",
        "allowed": "950,122",
        "denied": "49,878",
        "quarantined": "14",
        "ACLs": "1",
    }
    assert [node.text.partition(": ")[2] or node.text for node in second.all("li")] == [
        "A warning about all.",
        *WHAT_IF.warnings,
        "14 lines of the input are no events, and in no count.",
    ]
    answers = section.one("ul", class_="answers").text
    assert WHAT_IF.summary in answers
    assert "diffNot answered: needs --other" in answers


def test_tables_have_captions_headers_and_numbers_at_the_right(root: Node):
    table = _table(root, "Newly denied")
    assert table.parent is not None
    head = table.one("thead").all("th")
    assert [each.text for each in head] == ["principal", "operation", "events", "deciding ACL"]
    assert {each.attributes["scope"] for each in head} == {"col"}
    classes = [each.attributes.get("class") for each in head]
    assert classes == [None, None, "number", None]
    first = _rows(root, "Newly denied")[0]
    cells = first.all("td")
    assert [cell.text for cell in cells] == ["READ", "12,345", "–"]  # noqa: RUF001
    assert "number" in str(cells[1].attributes["class"])
    headings = [node.text for node in root.all("h3")]
    assert "Newly denied first 8 of 812 in what-if/flips: CSV, Parquet" in headings
    assert "Newly allowed none" in headings


def test_charts_name_themselves_and_show_each_number_twice(root: Node):
    days, principals = root.all("svg", role="img")
    for svg, chart in ((days, WHAT_IF.charts[0]), (principals, WHAT_IF.charts[1])):
        named = str(svg.attributes["aria-labelledby"]).split()
        assert [node.attributes["id"] for node in svg.all() if "id" in node.attributes] == named
        assert svg.all("title")[0].text == chart.title
        assert svg.one("desc").text.startswith(("Bars of ", "Columns by day of "))
    assert [node.text for node in days.all("rect")] == [
        "2026-01-01: newly denied 100",
        "2026-01-02: newly denied 70,031",
        "2026-01-02: newly allowed 17",
    ]
    rows = [[each.text for each in row.all() if each.tag in ("th", "td")]
            for row in _rows(root, "Numbers: Changes by day")]  # fmt: skip
    assert rows == [["2026-01-01", "100", "0"], ["2026-01-02", "70,031", "17"]]
    assert principals.all("rect")[0].text == "User:alice: events 9,001"
    assert len(principals.all("rect")) == 1 + len(HOSTILE)
    assert "There is nothing to draw." in root.one("section", id="job-what-if").text


def test_lengths_in_a_chart_are_as_the_numbers():
    chart = Chart("c", "bars", ["a", "b", "c"], {"x": [50.0, 25.0, 0], "y": [50.0, 0, 0]})
    root = Tree(page(replace(REPORT, results=[JobResult("j", "t", "s", charts=[chart])]))).root
    widths = [float(str(node.attributes["width"])) for node in root.all("rect")]
    assert widths[0] == pytest.approx(widths[1])
    assert widths[0] == pytest.approx(2 * widths[2], abs=0.05)
    assert len(widths) == 3


@pytest.mark.parametrize("kind", ["bars", "columns"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_chart_of_strange_numbers_is_drawn(kind: str, value: float):
    chart = Chart("c", kind, ["a"], {"x": [value]})  # type: ignore[arg-type]
    html = page(replace(REPORT, results=[JobResult("j", "t", "s", charts=[chart])]))
    drawn = Tree(html).root.one("svg", role="img")
    numbers = " ".join(str(value) for node in drawn.all() for value in node.attributes.values())
    assert not re.search(r"\b(nan|inf)\b", numbers)


def test_a_name_as_long_as_kafka_allows_is_shortened():
    result = JobResult("j", "t", "s", figures=(), tables=[
        replace(WHAT_IF.tables[0], columns=("principal",), rows=[("User:" + "x" * 32_000,)])
    ])  # fmt: skip
    html = page(replace(REPORT, results=[result]))
    assert len(html) < 150_000
    assert "x…x" in html


def test_it_says_what_was_read_and_how_to_run_it_again(root: Node):
    about = root.one("section", id="about")
    assert about.one("code").text == "aclbroker audit all --input 'a b'"
    assert "s3a://logs/2026" in about.text
    reasons = [
        [each.text for each in row.all() if each.tag in ("th", "td")]
        for row in _rows(about, "Quarantined lines")
    ]
    assert reasons == [["cut off", "13"], ["unknown rule", "1"]]
    (cluster,) = _rows(about, "Clusters")
    assert [each.text for each in cluster.all("td")] == [
        "1,000,000", "1", "0", "–", "User:root", "–", "no"  # noqa: RUF001
    ]  # fmt: skip


def test_a_report_of_one_job_has_its_title():
    html = page(replace(REPORT, results=[MATRIX], unanswered={}))
    assert Tree(html).root.one("h1").text == MATRIX.title


def _table(root: Node, label: str) -> Node:
    return root.one("div", **{"aria-label": label}).one("table")


def _rows(root: Node, label: str) -> list[Node]:
    return _table(root, label).one("tbody").all("tr")
