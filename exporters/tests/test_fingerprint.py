"""Fingerprints and ids equal those of pt-query-digest."""

import json
import random
import subprocess

import pytest

from keylag_exporters.slow_log.fingerprint import class_id, fingerprint
from keylag_exporters.slow_log.sql_comment import NO_TAG
from keylag_exporters.slow_log.statement_classes import StatementClass

# From the manual of pt-query-digest, and its output for rarer forms.
KNOWN = [
    (b"SELECT * FROM `t`  WHERE a = 'x'", b"select * from `t` where a = ?"),
    (b"select a in (1,2, 3)", b"select a in(?+)"),
    (b"insert into t values (1,'a'),(2,'b')", b"insert into t values(?+)"),
    (b"SELECT 1 FROM a UNION SELECT 1 FROM a", b"select ? from a /*repeat union*/"),
    (b"select x from t limit 5, 10", b"select x from t limit ?"),
    (b"select x from t limit 5 offset 10", b"select x from t limit ?"),
    (b"select x from t order by a asc, b ASC", b"select x from t order by a, b"),
    (b"select NULL, 0x1f, -1.5e10, true", b"select ?, ?, ?, ?"),
    (b"use keystone", b"use ?"),
    (b"call Refresh_It(1, 'x')", b"call refresh_it"),
    (b"administrator command: Quit", b"administrator command: Quit"),
    (b"SELECT /*!40001 SQL_NO_CACHE */ * FROM `user`", b"mysqldump"),
    (b"select /*keystone.user:1/2*/ 1", b"percona-toolkit"),
    (b"select 'it\\'s', \"it's\" -- why\n from t", b"select ?, ? from t"),
]

PARTS = """select|SELECT|insert into|INSERT INTO t VALUES|replace IGNORE INTO x values
 in | IN |(1,2)|('a','b')|(|)|,|, |'x'|'it\\'s'|'it''s'|"dq"|"a'b"|'a"b'|null|NULL|true
False|--|#x|# y|/* c */|/*!40001 x */|/*|*/|0x1F|1.5e-10|-3|+4|b'01'|x'ff'|tbl_2009
a.b|order by | ORDER BY | ASC| asc| ascii| desc|limit 1|limit 1, 2|LIMIT 5 OFFSET 3
 union all | UNION |select a from b|select 1|use db|call p(1)|call foo|values (1),(2)
VALUES ('a(b'), (3)| value |  |@@x|%s|`q`|\\|/*a.b:1/2*/|SELECT /*!40001 SQL_NO_CACHE */
/*keylag:route='POST /v3/auth/tokens',operation='validate'*/|-- 'c
\xc3\x84""".replace("\n", "|").split("|")
BYTES = [part.encode("latin-1") for part in PARTS] + [
    b"\t",
    b"\r\n",
    b"\n",
    b"\v",
    b"\0",
]
HEADER_PREFIXES = (b"#", b"use ", b"SET ", b"administrator")


def statements(seed, count):
    """Return random statements, most of them hard to parse."""
    draw = random.Random(seed)
    made = []
    while len(made) < count:
        glue = draw.choice([b"", b" "])
        text = glue.join(draw.choice(BYTES) for _ in range(draw.randint(1, 9)))
        if text.strip() and not text.startswith(HEADER_PREFIXES):
            made.append(text)
    return made


def log_of(texts):
    head = (
        b"# User@Host: a[a] @ h []\n"
        b"# Query_time: 0.%06d  Lock_time: 0.000000  Rows_sent: 0  Rows_examined: 0\n"
        b"SET timestamp=1795240444;\n"
    )
    return b"".join(head % (i + 1) + text + b";\n" for i, text in enumerate(texts))


def reference_counts(program, path):
    """Return {id: (count, time in seconds as text)} of pt-query-digest."""
    run = subprocess.run(
        [program, "--no-version-check", "--limit=100%", "--output=json", str(path)],
        capture_output=True,
        check=True,
    )
    classes = json.loads(run.stdout.decode("utf-8", "replace"), strict=False)["classes"]
    return {
        "0x" + one["checksum"]: (
            one["query_count"],
            one["metrics"]["Query_time"]["sum"],
        )
        for one in classes
    }


@pytest.mark.parametrize(("statement", "expected"), KNOWN)
def test_fingerprint_of_known_statements(statement, expected):
    assert fingerprint(statement) == expected


def test_fingerprint_is_truncated_to_5000_characters():
    one = StatementClass(b"select " + b"a" * 6000, NO_TAG)

    assert one.fingerprint == b"select " + b"a" * 4993
    assert one.id == class_id(b"select " + b"a" * 6000)


def test_class_id_is_the_uppercase_md5():
    assert class_id(b"rollback") == "0xFFF66E9B3D962FA319C8068B5C1997CD"


@pytest.mark.parametrize("seed", range(3))
def test_ids_of_random_statements_match_pt_query_digest(
    seed, pt_query_digest, tmp_path
):
    texts = statements(seed, 1500)
    path = tmp_path / "nasty.log"
    path.write_bytes(log_of(texts))
    ours = {}
    for text in texts:
        name = class_id(fingerprint(text))
        ours[name] = ours.get(name, 0) + 1

    theirs = {
        name: count
        for name, (count, _) in reference_counts(pt_query_digest, path).items()
    }

    assert ours == theirs


@pytest.mark.parametrize(
    "statement",
    [b"/*" * 300_000, b"-" * 300_000 + b"'", b"'" + b"\\'" * 200_000, b"(" * 300_000],
    ids=["comments", "dashes", "escapes", "parentheses"],
)
@pytest.mark.timeout(10)
def test_hostile_statement_takes_linear_time(statement):
    fingerprint(b"select " + statement)
