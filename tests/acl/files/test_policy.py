"""Policy files: every ACL there and back, what a person may write, errors that name the line."""

from contextlib import suppress
from io import StringIO
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.acl.files import policy_lines
from aclbroker.acl.files.policy import (
    Policy,
    PolicyError,
    dump_policy,
    parse_policy,
    read_policy,
    write_policy,
)

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED

MARKS = [
    "*",
    "~",
    "&",
    "!",
    "#",
    "-",
    "?",
    ":",
    "{",
    "}",
    "[",
    "]",
    ",",
    "'",
    "%",
    "@",
    "`",
    "|",
    ">",
    "<<",
    "=",
    "---",
    "...",
]
WORDS = [
    "null",
    "no",
    "1",
    "1.0",
    "1e3",
    "0x1",
    "1:30",
    "2026-01-01",
    "&a",
    "!t",
    "#c",
    "a:",
    "{x}",
    "'x'",
    "10.0.0.1",
    "User:*",
    "a,b",
    "x:y",
]

# Texts that YAML would read as something else, among texts of any characters that a broker takes.
_treacherous = st.sampled_from(
    [
        *MARKS,
        *WORDS,
        '"x"',
        "\\",
        "",
        " a ",
        "a #b",
        "a\nb",
        "\ufeff",
        "\x00",
        "\x85",
        "\u2028",
        "é𝄞",
        "\ufffe",
    ]
)
_texts = _treacherous | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_valid_bindings = st.builds(
    AclBinding,
    st.sampled_from([t for t in ResourceType if t > ResourceType.ANY]),
    _texts | st.just(CLUSTER_NAME),
    st.sampled_from([LITERAL, PREFIXED]),
    st.tuples(_texts, _texts).map(":".join),
    _texts,
    st.sampled_from([o for o in AclOperation if o > AclOperation.ANY]),
    st.sampled_from([ALLOW, DENY]),
).filter(lambda binding: invalid_reason(binding) is None)


def _dumped(acls, cluster=None):
    file = StringIO()
    dump_policy(Policy(acls, cluster), file)
    return file.getvalue()


@given(st.lists(_valid_bindings, max_size=8), st.none() | _texts)
def test_every_acl_comes_back_as_it_was_written(acls, cluster):
    policy = parse_policy(_dumped(acls, cluster))
    assert len(policy.acls) == len(set(acls))
    assert set(policy.acls) == set(acls)
    assert policy.cluster == cluster


@given(st.lists(_valid_bindings, max_size=8), st.randoms())
def test_equal_sets_are_equal_files(acls, random):
    other = acls + acls[:2]
    random.shuffle(other)
    assert _dumped(acls) == _dumped(other)


def test_a_principal_without_acls_is_not_written():
    lines = policy_lines.written_in_order([("User:a", []), ("User:b", [])], None)
    assert "".join(lines) == "version: 1\nacls: []\n"


def test_names_of_thirty_thousand_characters_come_back(tmp_path):
    acl = AclBinding(
        ResourceType.GROUP,
        "g " * 16_000,
        LITERAL,
        "User:" + "ü" * 32_000,
        "*",
        AclOperation.READ,
        ALLOW,
    )
    write_policy(Policy([acl]), tmp_path / "acls.yaml")
    assert read_policy(tmp_path / "acls.yaml").acls == [acl]


def test_a_file_is_grouped_for_people():
    def acl(name, pattern, host, operation, permission=ALLOW, principal="User:alice"):
        return AclBinding(ResourceType.TOPIC, name, pattern, principal, host, operation, permission)

    acls = [
        acl("pay.", PREFIXED, "10.0.0.1", AclOperation.WRITE),
        acl("orders.eu", LITERAL, "*", AclOperation.READ),
        acl("orders.eu", LITERAL, "*", AclOperation.DELETE, DENY),
        acl("orders.eu", LITERAL, "*", AclOperation.DESCRIBE),
        acl("*", LITERAL, "*", AclOperation.DESCRIBE, principal="User:*"),
    ]
    assert (
        _dumped(acls, "c1")
        == """\
version: 1
cluster: c1
acls:
- principal: "User:*"
  rules:
  - topic: "*"
    allow: [DESCRIBE]
- principal: User:alice
  rules:
  - topic: orders.eu
    allow: [READ, DESCRIBE]
    deny: [DELETE]
  - topic: pay.
    pattern: prefixed
    host: 10.0.0.1
    allow: [WRITE]
"""
    )


def test_what_a_person_may_write():
    text = """
# Reviewed in June
acls:
  - rules:
      - {topic: 1.0, allow: read}
      - transactional-id: no
        allow: [Write, WRITE]
        pattern: Prefixed
      - deny:
          - ALL      # not from there
        cluster: kafka-cluster
        host: '::1'
    principal: User:CN=alice,OU=Data Team
  - principal: "User:bob"
    rules: []
version: 1
"""
    who = "User:CN=alice,OU=Data Team"
    op = AclOperation
    assert parse_policy(text).acls == [
        AclBinding(ResourceType.TOPIC, "1.0", LITERAL, who, "*", op.READ, ALLOW),
        AclBinding(ResourceType.TRANSACTIONAL_ID, "no", PREFIXED, who, "*", op.WRITE, ALLOW),
        AclBinding(ResourceType.CLUSTER, CLUSTER_NAME, LITERAL, who, "::1", op.ALL, DENY),
    ]


_START = "version: 1\nacls:\n- principal: User:a\n  rules:\n"


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", 1, "the file is empty"),
        ("- a", 1, "the policy must be a mapping"),
        ("version: 2\nacls: []\n", 1, "version 2 is not known"),
        ("\nversion: 1\n", 2, "the policy has no 'acls'"),
        ("acls: []\n", 1, "the policy has no 'version'"),
        ("version: 1\nacl: []\n", 2, "no key 'acl', only version, cluster, acls"),
        ("version: 1\nversion: 1\nacls: []\n", 2, "'version' stands twice"),
        ("version: 1\nacls: {}\n", 2, "'acls' must be a list"),
        ("version: 1\nacls:\n", 2, "'acls' must be a list"),
        ("version: 1\nacls: []\n---\n", 3, "a second begins"),
        ("version: 1\nacls:\n- principal: User:a\n", 3, "needs 'principal' and 'rules'"),
        (_START + "  - allow: [READ]\n", 5, "names its resource by one of topic, group"),
        (_START + "  - topic: a\n", 5, "a rule needs operations"),
        (_START + "  - topic: a\n    allow: []\n", 6, "'allow' names no operation"),
        (_START + "  - topic:\n    allow: READ\n", 5, "'topic' has no value"),
        (_START + "  - topic: a\n    group: b\n    allow: READ\n", 6, "'group' is a second"),
        (_START + "  - topic: a\n    allow: [READ, REED]\n", 6, "'REED' is not"),
        (_START + "  - topic: a\n    allow: [ANY]\n", 6, "'ANY' is not"),
        (_START + "  - topic: a\n    pattern: match\n    allow: READ\n", 6, "literal, prefixed"),
        (_START + '  - topic: ""\n    allow: READ\n', 5, "name of a new ACL must not be empty"),
        (_START + "  - cluster: mine\n    allow: ALL\n", 5, "must be kafka-cluster"),
        (_START + "  - topic: *all\n    allow: READ\n", 5, "quote the text"),
        (_START + "  - topic: &a x\n    allow: READ\n", 5, "anchors (&) and tags (!)"),
        (_START + "  - topic: !!str x\n    allow: READ\n", 5, "anchors (&) and tags (!)"),
        (_START + "  - topic: [a]\n", 5, "'topic' must be one text"),
        (_START + "  - topic: *\n", 5, "quote a text that begins with *"),
        (_START + '  - topic: "a\n', 6, "unexpected end of stream"),
        (_START.replace("User:a", "alice") + "  - {topic: a, allow: READ}\n", 5, "has no colon"),
    ],
)
def test_an_error_names_the_file_the_place_and_what_is_wrong(text, line, problem):
    with pytest.raises(PolicyError) as error:
        parse_policy(text, "acls.yaml")
    message = str(error.value)
    assert message.startswith(f"acls.yaml: line {line}, column "), message
    assert problem in message


@pytest.mark.parametrize("text", [b"version: \xff", "version: \x01", b"\xff\xfe\x00"])
def test_bytes_that_are_no_text_are_an_error_of_the_file(text):
    with pytest.raises(PolicyError, match=r"^acls\.yaml: "):
        parse_policy(text, "acls.yaml")


@given(st.text("version: 1\nacls-[]{}&*!|>'\"?#,%@\t", max_size=60) | st.binary(max_size=20))
def test_any_text_is_a_policy_or_a_policy_error(text):
    with suppress(PolicyError):
        parse_policy(text)


PLAIN = """\
# Reviewed in June
version: 1
cluster: c1
acls:
- principal: "User:*"
  rules:
  - topic: "*"
    allow: [DESCRIBE]

- principal: User:alice
  rules:
  # hers
  - topic: orders.eu
    allow: [READ, DESCRIBE]
    deny: [DELETE]
  - transactional-id: "é #a: [b], 'c'"
    pattern: prefixed
    host: 10.0.0.1
    deny: [WRITE]
  - cluster: kafka-cluster
    host: "::1"
    allow: [ALL]
"""


def as_yaml(text: str) -> Policy:
    """What the reader of YAML makes of a text: the other one knows no mark of a document."""
    assert policy_lines.read(f"---\n{text}") is None
    return parse_policy(f"---\n{text}")


@given(st.lists(_valid_bindings, max_size=8), st.none() | _texts)
def test_what_is_read_line_by_line_is_what_yaml_says(acls, cluster):
    text = _dumped(acls, cluster)
    assert parse_policy(text) == parse_policy(text.encode()) == as_yaml(text)


def test_files_of_plain_names_are_read_line_by_line():
    acls = as_yaml(PLAIN).acls
    assert len(acls) == 6
    assert policy_lines.read(PLAIN) == policy_lines.read(PLAIN.encode()) == (acls, "c1")
    written = _dumped(acls)
    assert policy_lines.read(written) == tuple(as_yaml(written))


_INSERTED = [
    *" \t\n\r:#-[]{},\"'\\&*!|>%@`?~=a1é",
    "\x00", "\x85", "\xa0", "\u2028", "\ufeff", "\ud800", "𝄞", "  ", ": ", " #", "---\n", "...\n",
    "\n    ", "READ", "null", "~", '""', "prefixed",
]  # fmt: skip


def changed(random: Random, text: str) -> str:
    """A text after some small change: of lines, or of characters."""
    lines = text.splitlines(keepends=True)
    place = random.randrange(len(lines))
    kind = random.randrange(6)
    if kind == 0:
        del lines[place]
    elif kind == 1:
        lines.insert(place, random.choice(lines))
    elif kind == 2:
        other = random.randrange(len(lines))
        lines[place], lines[other] = lines[other], lines[place]
    elif kind == 3:
        lines[place] = random.choice(("", " ", "  ")) + lines[place].lstrip()
    else:
        line, at = lines[place], random.randrange(len(lines[place]))
        lines[place] = line[:at] + random.choice(_INSERTED) + line[at + kind - 4 :]
    return "".join(lines)


@pytest.mark.parametrize("seed", range(5))
def test_a_text_that_is_nearly_plain_is_read_as_yaml_reads_it_or_left_to_yaml(seed):
    random = Random(f"nearly plain {seed}")
    taken = 0
    for _ in range(1000):
        text = PLAIN
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            text = changed(random, text)
        found = policy_lines.read(text)
        if found is not None:
            taken += 1
            assert Policy(*found) == as_yaml(text), text
    assert 100 < taken < 900


def test_what_no_broker_would_create_is_not_written():
    acl = AclBinding(
        ResourceType.CLUSTER, "mine", LITERAL, "User:a", "*", AclOperation.ALTER, ALLOW
    )
    with pytest.raises(ValueError, match="must be kafka-cluster"):
        _dumped([acl])
