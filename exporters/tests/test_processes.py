"""Groups of processes of this host, and of a /proc where they come and go."""

import subprocess
import sys

import pytest

from keylag_exporters.model import UnreachableError
from keylag_exporters.processes import SOURCE_TYPE
from keylag_exporters.settings import SettingsError

PREFIX = "namedprocess_namegroup_"
STAT = "{pid} ({program}) S {parent} 1 1 0 -1 0 9 0 {faults} 0 {user} {system} 7 8 20 "
STAT += "0 3 0 {start} 4096 {pages} 1 2 3"
IO = "rchar: 5\nwchar: 6\nread_bytes: {read}\nwrite_bytes: {written}\n"
FIRST = "systemd"
WORK = "import sys; print(sum(range(10_000_000)), flush=True); sys.stdin.read()"
USED = {"faults": 0, "user": 0, "system": 0, "pages": 0}


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """An empty /proc, of a kernel with 100 ticks per second and pages of 4 KiB."""
    monkeypatch.setattr("keylag_exporters.processes.TICKS_PER_SECOND", 100)
    monkeypatch.setattr("keylag_exporters.processes.PAGE_BYTES", 4096)
    (tmp_path / "uptime").write_text("not a process")
    return tmp_path


@pytest.fixture
def write(proc):
    """A function that writes the files of one process."""

    def write_files(pid, program, command_line="", *, parent=1, start=1, **used):
        folder = proc / str(pid)
        folder.mkdir(exist_ok=True)
        known = {"pid": pid, "program": program, "parent": parent, "start": start}
        (folder / "stat").write_text(STAT.format(**known, **{**USED, **used}))
        (folder / "cmdline").write_text(command_line.replace(" ", "\0"))

    return write_files


@pytest.fixture
def create_source(proc, write, settings, tmp_path_factory):
    """A function that returns a source for which all processes but one have begun."""

    def create(**more):
        source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"proc": proc, **more}))
        later = tmp_path_factory.mktemp("later")
        for folder in proc.glob("[0-9]*"):
            folder.rename(later / folder.name)
        write(1, FIRST)
        source.collect()
        for folder in later.iterdir():
            folder.rename(proc / folder.name)
        return source

    return create


def remove(folder):
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def value(found, name, group, **labels):
    key = tuple(sorted({"groupname": group, **labels}.items()))
    return found[f"{PREFIX}{name}", key]


def groups(found):
    return {dict(labels)["groupname"] for _, labels in found} - {FIRST}


def test_real_host_has_a_process_while_it_runs(settings, samples, tmp_path):
    """Other tests may start and end processes meanwhile."""
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"groups": f"own={tmp_path}"}))
    source.collect()
    command = [sys.executable, "-c", WORK, tmp_path]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as child:
        child.stdout.readline()
        during = samples(source.collect())
    after = samples(source.collect())

    assert value(during, "num_procs", "own") == 1
    assert value(after, "num_procs", "own") == 0
    assert value(during, "memory_bytes", "own", memtype="resident") > 1e6
    assert value(after, "cpu_seconds_total", "own", mode="user") > 0
    assert value(after, "read_bytes_total", "own") >= 0


def test_files_are_read_in_the_units_of_process_exporter(
    proc, write, create_source, samples
):
    write(7, "mariadbd", faults=3, user=250, system=50, pages=10)
    (proc / "7" / "io").write_text(IO.format(read=512, written=1024))
    write(8, "mariadbd", user=150, pages=5)
    found = samples(create_source().collect())

    assert value(found, "num_procs", "mariadbd") == 2
    assert value(found, "cpu_seconds_total", "mariadbd", mode="user") == 4
    assert value(found, "cpu_seconds_total", "mariadbd", mode="system") == 0.5
    assert value(found, "memory_bytes", "mariadbd", memtype="resident") == 15 * 4096
    assert value(found, "major_page_faults_total", "mariadbd") == 3
    assert value(found, "read_bytes_total", "mariadbd") == 512
    assert value(found, "write_bytes_total", "mariadbd") == 1024


def test_transfers_that_may_not_be_seen_are_absent(write, create_source, samples):
    write(7, "mariadbd")
    names = {name for name, _ in samples(create_source().collect())}

    assert f"{PREFIX}cpu_seconds_total" in names
    assert not {name for name in names if "bytes_total" in name}


@pytest.mark.parametrize(
    ("program", "command_line"),
    [
        ("uwsgi", "/opt/keystone/bin/uwsgi --ini=uwsgi.ini"),
        ("uwsgi", "uwsgi --ini /etc/keystone/keystone-public.ini"),
        ("apache2", "(wsgi:keystone-pu -k start"),
        ("gunicorn", "/usr/bin/python3 gunicorn keystone.wsgi.api:application"),
    ],
)
def test_keystone_is_found_in_the_servers_that_run_it(
    write, create_source, samples, program, command_line
):
    write(7, program, command_line)
    write(8, program, "uwsgi --ini /etc/nova/nova-api.ini")

    assert groups(samples(create_source().collect())) == {"keystone", program}


def test_first_pattern_that_matches_counts(write, create_source, samples):
    write(7, "java", "java -Dtenant=1 Cassandra")
    write(8, "java", "java Ycsb")
    source = create_source(groups="tenant=tenant=1;neighbours=java")

    assert groups(samples(source.collect())) == {"tenant", "neighbours"}


def test_names_with_spaces_and_parentheses_are_whole(write, create_source, samples):
    write(7, "tmux: (server) 1")

    assert groups(samples(create_source().collect())) == {"tmux: (server) 1"}


def test_threads_of_the_kernel_are_one_group(write, create_source, samples):
    write(2, "kthreadd", parent=0)
    write(30, "kworker/0:1-events", parent=2, system=500)
    found = samples(create_source().collect())

    assert groups(found) == {"kernel"}
    assert value(found, "cpu_seconds_total", "kernel", mode="system") == 5


def test_counters_keep_what_ended_processes_used(proc, write, create_source, samples):
    write(7, "rally", user=200)
    write(8, "rally", user=100)
    source = create_source()
    source.collect()
    remove(proc / "7")
    write(8, "rally", user=150)
    found = samples(source.collect())

    assert value(found, "num_procs", "rally") == 1
    assert value(found, "cpu_seconds_total", "rally", mode="user") == 3.5


def test_pid_that_is_used_again_counts_from_zero(write, create_source, samples):
    write(7, "rally", start=1, user=200)
    source = create_source()
    source.collect()
    write(7, "rally", start=2, user=50)
    found = samples(source.collect())

    assert value(found, "cpu_seconds_total", "rally", mode="user") == 2.5


def test_program_that_another_one_becomes_gets_only_its_own_time(
    write, create_source, samples
):
    write(7, "sh", "sh -c java", user=100)
    source = create_source()
    source.collect()
    write(7, "java", "java", user=300)
    found = samples(source.collect())

    assert value(found, "cpu_seconds_total", "sh", mode="user") == 1
    assert value(found, "cpu_seconds_total", "java", mode="user") == 2
    assert value(found, "num_procs", "sh") == 0


def test_counters_begin_at_zero(write, settings, samples, proc):
    """A restart of the exporter is no CPU time of programs that run."""
    write(7, "mariadbd", user=500)
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"proc": proc}))
    first = samples(source.collect())
    write(7, "mariadbd", user=600)
    second = samples(source.collect())

    assert value(first, "cpu_seconds_total", "mariadbd", mode="user") == 0
    assert value(second, "cpu_seconds_total", "mariadbd", mode="user") == 1


def test_groups_above_the_limit_are_summed(write, create_source, samples):
    write(7, "first", user=100)
    source = create_source(limit=2)
    source.collect()
    write(8, "second", user=200)
    write(9, "third", user=300)
    write(10, "uwsgi", "uwsgi keystone.ini")
    source.collect()
    found = samples(source.collect())

    assert groups(found) == {"first", "other", "keystone"}
    assert value(found, "num_procs", "other") == 2
    assert value(found, "cpu_seconds_total", "other", mode="user") == 5


def test_process_that_ends_meanwhile_is_left_out(proc, write, create_source, samples):
    write(7, "mariadbd")
    (proc / "8").mkdir()

    assert groups(samples(create_source().collect())) == {"mariadbd"}


@pytest.mark.parametrize("name", [".", "missing"])
def test_wrong_proc_is_named_in_the_error(proc, settings, name):
    source = SOURCE_TYPE.create(settings(SOURCE_TYPE, {"proc": proc / name}))

    with pytest.raises(UnreachableError, match=f"is {proc / name} a /proc"):
        source.collect()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("keystone", "expected NAME=PATTERN, not 'keystone'"),
        ("=uwsgi", "expected NAME=PATTERN"),
        ("keystone=(", "is no regular expression"),
    ],
)
def test_wrong_patterns_are_named_in_the_error(create_source, text, message):
    with pytest.raises(SettingsError, match=message):
        create_source(groups=text)
