"""The kernel's files: those of this host, and trees of files as other kernels have."""

import os
from pathlib import Path

import pytest

from keylag_exporters.host import CPU_MODES, SOURCE_TYPE
from keylag_exporters.model import UnreachableError

STAT = """\
cpu  40 0 0 0 0 0 0 0 0 0
cpu0 100 200 300 400 500 600 700 800 0 0
cpu1 1 2 3 4 5 6 7 8 0 0
cpu3 10 20 30 40 50 60 70 80 0 0
intr 5 0 0
"""
# what a kernel has besides /proc/stat
FILES = {
    "pressure/cpu": "some avg10=1.00 avg60=2.00 avg300=3.00 total=1500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "pressure/io": "some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=750000\n",
    "pressure/memory": "some avg10=0.00 avg60=0.00 avg300=0.00 total=20\n"
    "full avg10=0.00 avg60=0.00 avg300=0.00 total=10\n",
    "net/netstat": "TcpExt: SyncookiesSent ListenOverflows ListenDrops\n"
    "TcpExt: 1 7 9\nIpExt: InNoRoutes\nIpExt: 3\n",
    "vmstat": "nr_free_pages 5\npgmajfault 11\npswpin 12\npswpout 13\n",
    "meminfo": "MemTotal:       2048 kB\nMemFree: 5 kB\nMemAvailable:   1024 kB\n"
    "HugePages_Total:       0\n",
    "loadavg": "1.25 2.50 3.75 2/345 6789\n",
    "diskstats": "   8       0 sda 10 1 2 1500 20 3 4 2500 0 3500 9000 0 0 0 0 5 250\n"
    "   8       1 sda1 1 1 1 1 1 1 1 1 0 1 1\n"
    " 259       0 nvme0n1 1 0 0 1 1 0 0 1 0 1 1\n"
    " 259       1 nvme0n1p1 1 0 0 1 1 0 0 1 0 1 1\n"
    "  65     161 sdaa1 1 0 0 1 1 0 0 1 0 1 1\n"
    "   7       0 loop0 1 0 0 1 1 0 0 1 0 1 1\n"
    " 253       0 dm-0 2 0 0 2 2 0 0 2 0 2 2\n",
}
V2_STAT = "usage_usec 9\nnr_periods 30\nnr_throttled 20\nthrottled_usec 1500000\n"
V1_STAT = "nr_periods 30\nnr_throttled 20\nthrottled_time 1500000000\n"
THROTTLED = {"periods": 30, "throttled_periods": 20, "throttled_seconds": 1.5}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def proc(tmp_path, monkeypatch):
    """A /proc with nothing but CPU times, of a kernel with 100 ticks per second."""
    monkeypatch.setattr("keylag_exporters.host.TICKS_PER_SECOND", 100)
    write(tmp_path / "proc", {"stat": STAT})
    return tmp_path / "proc"


@pytest.fixture
def cgroups(tmp_path):
    return tmp_path / "sys" / "fs" / "cgroup"


@pytest.fixture
def create_source(tmp_path, settings):
    def create(**more):
        given = {"proc": tmp_path / "proc", "sys": tmp_path / "sys", **more}
        return SOURCE_TYPE.create(settings(SOURCE_TYPE, given))

    return create


def names(found):
    return {name for name, _ in found}


def cpu(found, number, mode):
    return found["node_cpu_seconds_total", (("cpu", number), ("mode", mode))]


def disk(found, name, device):
    return found[f"node_disk_{name}", (("device", device),)]


def throttling(found):
    """Return what is exported of CPU limits, and the cgroup that has it."""
    prefix = "container_cpu_cfs_"
    groups = {labels for name, labels in found if name.startswith(prefix)}
    values = {
        name.removeprefix(prefix).removesuffix("_total"): value
        for (name, _), value in found.items()
        if name.startswith(prefix)
    }
    return values, [dict(labels)["id"] for labels in groups]


def test_real_host_has_the_metrics_of_its_kernel(settings, samples):
    found = samples(SOURCE_TYPE.create(settings(SOURCE_TYPE, {})).collect())
    cpus = {dict(labels)["cpu"] for name, labels in found if "cpu_seconds" in name}
    modes = {dict(labels)["mode"] for name, labels in found if "cpu_seconds" in name}

    assert len(cpus) == min(os.cpu_count(), 64 + 1)
    assert modes == set(CPU_MODES)
    assert found["node_memory_MemTotal_bytes", ()] == os.sysconf(
        "SC_PAGE_SIZE"
    ) * os.sysconf("SC_PHYS_PAGES")
    assert found["node_load1", ()] == pytest.approx(os.getloadavg()[0], abs=5)
    assert found["node_netstat_TcpExt_ListenOverflows", ()] >= 0
    assert found["node_vmstat_pgmajfault", ()] > 0
    for resource in ("cpu", "io", "memory"):
        has_pressure = Path("/proc/pressure", resource).exists()
        name = f"node_pressure_{resource}_waiting_seconds_total"
        assert (name in names(found)) == has_pressure


def test_every_file_is_read_in_the_units_of_node_exporter(proc, create_source, samples):
    write(proc, FILES)
    found = samples(create_source().collect())

    assert [cpu(found, "0", mode) for mode in CPU_MODES] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert cpu(found, "3", "steal") == 0.8
    assert {
        name.removeprefix("node_"): value
        for (name, labels), value in found.items()
        if not labels
    } == {
        "pressure_cpu_waiting_seconds_total": 1.5,
        "pressure_io_waiting_seconds_total": 2.5,
        "pressure_io_stalled_seconds_total": 0.75,
        "pressure_memory_waiting_seconds_total": 0.00002,
        "pressure_memory_stalled_seconds_total": 0.00001,
        "netstat_TcpExt_ListenOverflows": 7,
        "netstat_TcpExt_ListenDrops": 9,
        "vmstat_pgmajfault": 11,
        "vmstat_pswpin": 12,
        "vmstat_pswpout": 13,
        "memory_MemTotal_bytes": 2048 * 1024,
        "memory_MemAvailable_bytes": 1024 * 1024,
        "load1": 1.25,
    }
    assert disk(found, "reads_completed_total", "sda") == 10
    assert disk(found, "read_time_seconds_total", "sda") == 1.5
    assert disk(found, "writes_completed_total", "sda") == 20
    assert disk(found, "write_time_seconds_total", "sda") == 2.5
    assert disk(found, "io_time_seconds_total", "sda") == 3.5
    assert disk(found, "io_time_weighted_seconds_total", "sda") == 9
    assert disk(found, "flush_requests_total", "sda") == 5
    assert disk(found, "flush_requests_time_seconds_total", "sda") == 0.25


def test_kernels_before_5_5_count_no_flushes(proc, create_source, samples):
    write(proc, FILES)

    found = samples(create_source().collect())

    devices = {dict(labels).get("device") for name, labels in found if "flush" in name}
    assert devices == {"sda"}


def test_partitions_and_loop_devices_are_left_out(proc, create_source, samples):
    write(proc, FILES)
    found = samples(create_source().collect())
    devices = {dict(labels).get("device") for name, labels in found if "disk" in name}

    assert devices == {"sda", "nvme0n1", "dm-0"}


def test_kernel_without_the_other_files_exports_cpu_times(proc, create_source, samples):
    # reading this folder fails, as reading a pressure that is switched off does
    (proc / "pressure" / "cpu").mkdir(parents=True)

    assert names(samples(create_source().collect())) == {"node_cpu_seconds_total"}


def test_wrong_proc_is_named_in_the_error(tmp_path, create_source):
    with pytest.raises(UnreachableError, match=f"is {tmp_path}/proc a /proc"):
        create_source().collect()


def test_cpus_and_disks_above_the_limit_are_summed(proc, create_source, samples):
    write(proc, FILES)
    found = samples(create_source(limit=1).collect())

    assert cpu(found, "0", "user") == 1
    assert cpu(found, "other", "user") == 0.11
    assert disk(found, "reads_completed_total", "sda") == 10
    assert disk(found, "reads_completed_total", "other") == 3


def test_cpu_time_that_goes_back_a_little_is_held(proc, create_source, samples):
    """Prometheus would take a lower value for a restart of the counter."""
    source = create_source()
    source.collect()
    (proc / "stat").write_text(STAT.replace("400 500", "399 501"))
    found = samples(source.collect())

    assert cpu(found, "0", "idle") == 4
    assert cpu(found, "0", "iowait") == 5.01


def test_cpu_that_was_replaced_counts_from_zero(proc, create_source, samples):
    source = create_source()
    source.collect()
    (proc / "stat").write_text(STAT.replace("400 500", "0 501"))

    assert cpu(samples(source.collect()), "0", "idle") == 0


def test_cpu_limit_of_version_2_is_read(proc, cgroups, create_source, samples):
    folder = "system.slice/keystone.service"
    write(cgroups / folder, {"cpu.max": "50000 100000\n", "cpu.stat": V2_STAT})
    found = samples(create_source(cgroup=folder).collect())

    assert throttling(found) == (THROTTLED, [f"/{folder}"])


def test_cpu_limit_of_version_1_is_read(proc, cgroups, create_source, samples):
    write(proc, {"self/cgroup": "9:name=systemd:/x\n4:cpuacct,cpu:/docker/1\n0::/\n"})
    write(
        cgroups / "cpu" / "docker" / "1",
        {"cpu.cfs_quota_us": "50000\n", "cpu.stat": V1_STAT},
    )

    assert throttling(samples(create_source().collect())) == (THROTTLED, ["/docker/1"])


def test_limit_of_a_slice_applies_to_the_services_in_it(
    proc, cgroups, create_source, samples
):
    write(proc, {"self/cgroup": "0::/a.slice/b.service\n"})
    write(cgroups / "a.slice", {"cpu.max": "50000 100000\n", "cpu.stat": V2_STAT})
    write(cgroups / "a.slice" / "b.service", {"cpu.max": "max 100000\n"})

    assert throttling(samples(create_source().collect())) == (THROTTLED, ["/a.slice"])


@pytest.mark.parametrize(
    "limit", [{"a/cpu.max": "max 100000\n"}, {"cpu/a/cpu.cfs_quota_us": "-1\n"}]
)
def test_cgroup_without_a_limit_exports_no_throttling(
    proc, cgroups, create_source, samples, limit
):
    write(cgroups, {**limit, "a/cpu.stat": V2_STAT, "cpu/a/cpu.stat": V1_STAT})

    assert throttling(samples(create_source(cgroup="/a").collect())) == ({}, [])
