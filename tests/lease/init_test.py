"""berth init: what an administrator lays down, in an image of a file system."""

import os
import stat

import pytest
from jobs import eventually
from lease_jobs import holder, ready, waiter

PARTS = ["", "devices", "queue", "leases", "inside", "outcomes"]
ORDER_IS_NEW = [
    "the order of the queue is new: a request comes first if it has waited longest for its length, so short "
    "ones wait less",
    'to have first come, first served, write expect = "none" into /etc/berth.toml',
    "to see what it changes here: berth simulate --from-history --since 30d --expect none",
]


@pytest.fixture
def root(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: makes files of root's")
    path = tmp_path / "image"
    for part in ("run", "etc", "tmp"):
        (path / part).mkdir(parents=True)
    return path


def mode(path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_uid, stat.S_IMODE(status.st_mode)


def test_an_image_that_has_no_folders_yet_gets_those_that_are_needed(make_machine, root):
    for part in ("run", "etc", "tmp"):
        (root / part).rmdir()
    answer = make_machine("2xH100").berth("init", "--root", root)
    assert (answer.status, answer.err) == (0, "")
    assert (root / "etc/tmpfiles.d/berth.conf").exists()


def test_it_makes_the_directory_a_file_a_device_and_the_line_for_each_boot(make_machine, root):
    machine = make_machine("2xH100")
    answer = machine.berth("init", "--root", root)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out.splitlines() == [
        f"made {root}/run/berth",
        "made 2 device files",
        f"wrote {root}/etc/tmpfiles.d/berth.conf, which makes all of it again at each boot",
        *ORDER_IS_NEW,
    ]
    for part in PARTS:
        assert mode(root / "run/berth" / part) == (0, 0o1777)
    uuids = sorted(device["uuid"] for device in machine.berth("list", "--json").json["devices"])
    files = sorted((root / "run/berth/devices").iterdir())
    assert [file.name for file in files] == uuids
    assert all(mode(file) == (0, 0o1666) for file in files)
    lines = (root / "etc/tmpfiles.d/berth.conf").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        *(f"d {os.path.join('/run/berth', part).rstrip('/')} 1777 root root -" for part in PARTS),
        *(f"f /run/berth/devices/{uuid} 1666 root root -" for uuid in uuids),
        "f /run/berth/order 0644 root root - berth-order 1 expect=runs",
    ]
    assert mode(root / "run/berth/order") == (0, 0o644)
    assert (root / "run/berth/order").read_text() == "berth-order 1 expect=runs\n"


def test_the_locks_of_originals_that_the_site_file_names_are_made_at_each_boot(make_machine, root):
    (root / "etc/berth.toml").write_text(
        'safe_gpu_locks = ["/tmp/safe_gpu/lock", "/tmp/lock", "/tmp/a b", "/srv/lock"]\n'
        'gpu_scheduler_locks = ["/tmp/gpu_locks", "~/.gpu_locks", "/tmp/odd"]\n'
    )
    (root / "tmp/odd").mkdir(mode=0o755)
    answer = make_machine("1xH100").berth("init", "--root", root)
    assert (answer.status, answer.err) == (0, "")
    lines = (root / "etc/tmpfiles.d/berth.conf").read_text().splitlines()
    assert sorted(line for line in lines if "/run/berth" not in line and not line.startswith("#")) == [
        "d /tmp/gpu_locks 0777 root root -",
        "d /tmp/safe_gpu 0777 root root -",
        "f /tmp/lock 0666 root root -",
        "f /tmp/safe_gpu/lock 0666 root root -",
    ]


def test_again_there_is_nothing_to_do(make_machine, root):
    machine = make_machine("2xH100")
    machine.berth("init", "--root", root)
    answer = machine.berth("init", "--root", f"{root}/")
    assert (answer.status, answer.out, answer.err) == (0, "nothing to do: all is as it should be\n", "")


def test_whatever_the_umask(machine, root):
    machine.run("bash", "-c", f"umask 077; {machine.program} init --root {root}")
    assert mode(root / "run/berth") == (0, 0o1777)
    assert mode(root / "etc/tmpfiles.d/berth.conf") == (0, 0o644)


def test_a_new_device_is_added(make_machine, root):
    machine = make_machine("1xH100")
    machine.berth("init", "--root", root)
    machine.change("2xH100")
    assert machine.berth("init", "--root", root).out.startswith("made 1 device file\n")
    assert (root / "etc/tmpfiles.d/berth.conf").read_text().count("\nf /run/berth/devices/") == 2


def test_what_a_user_made_becomes_roots_and_stays_locked(make_machine, root):
    machine = make_machine("1xH100")
    site = root / "run/berth"
    machine.env["BERTH_DIR"] = str(site)
    holder(machine)
    (device,) = (site / "devices").iterdir()
    for path in (site, site / "queue", device):
        os.chown(path, 20001, 20001)
    site.chmod(0o777)
    device.chmod(0o600)
    inode = device.stat().st_ino
    answer = machine.berth("init", "--root", root)
    assert answer.out.splitlines()[:3] == [
        f"{site} is root's now, and nobody can remove others' files there",
        f"{site}/queue is root's now, and nobody can remove others' files there",
        f"{site}/devices/{device.name} is root's now",
    ]
    assert (mode(site), mode(site / "queue"), mode(device)) == ((0, 0o1777), (0, 0o1777), (0, 0o1666))
    assert device.stat().st_ino == inode
    assert machine.berth("run", "--no-wait", "--", "true").status == 75


def test_a_file_with_another_name_is_not_given_to_everybody(make_machine, root):
    machine = make_machine("1xH100")
    machine.berth("init", "--root", root)
    secret = root / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    (device,) = (root / "run/berth/devices").iterdir()
    device.unlink()
    os.link(secret, device)
    answer = machine.berth("init", "--root", root)
    assert (answer.status, answer.err) == (0, "")
    assert answer.out == f"{device} had another name too, and is made anew\n"
    assert (mode(secret), secret.read_text()) == ((0, 0o600), "x")
    assert (mode(device), device.read_text()) == ((0, 0o1666), "")


def test_a_file_with_another_name_stays_as_long_as_it_is_leased(make_machine, root):
    machine = make_machine("1xH100")
    machine.env["BERTH_DIR"] = str(root / "run/berth")
    machine.berth("init", "--root", root)
    (device,) = (root / "run/berth/devices").iterdir()
    os.chown(device, 20001, 20001)
    os.link(device, root / "second")
    job = holder(machine)
    answer = machine.berth("init", "--root", root)
    assert answer.err == (
        f"berth: {device} has another name too, and is leased: "
        "call berth init again when the lease has ended\n"
    )
    assert mode(device)[0] == 20001
    job.kill()
    job.wait()
    assert eventually(lambda: "is made anew" in machine.berth("init", "--root", root).out)
    assert mode(device) == (0, 0o1666) and mode(root / "second")[0] == 20001


def test_a_symbolic_link_in_its_place_is_refused(machine, root):
    (root / "elsewhere").mkdir()
    (root / "run/berth").symlink_to(root / "elsewhere")
    answer = machine.berth("init", "--root", root)
    assert (answer.status, answer.out) == (1, "")
    assert "is not a directory" in answer.err
    assert mode(root / "elsewhere")[1] == 0o755


def test_an_administrators_own_line_is_left_alone(machine, root):
    own = root / "etc/tmpfiles.d/berth.conf"
    own.parent.mkdir()
    own.write_text("# mine\n")
    answer = machine.berth("init", "--root", root)
    assert answer.status == 0
    assert answer.err == f"berth: {own} was not written by berth init and is left as it is\n"
    assert own.read_text() == "# mine\n"


def test_without_a_driver_the_directory_is_made_and_the_rest_said(machine, root):
    machine.change('init_result = 9\n[[device]]\nmodel = "T4"\n')
    answer = machine.berth("init", "--root", root)
    assert answer.status == 0
    assert answer.out.splitlines()[0] == f"made {root}/run/berth"
    assert "no device files are made" in answer.err


def test_while_another_directory_is_in_use_it_makes_nothing_and_names_who_uses_it(make_machine, root):
    machine = make_machine("1xH100")
    machine.leases = root / "tmp/berth"
    machine.env["BERTH_DIR"] = str(machine.leases)
    job = holder(machine)
    waiting = waiter(machine)
    answer = machine.berth("init", "--root", root)
    assert (answer.status, answer.out) == (75, "")
    (uuid,) = os.listdir(root / "tmp/berth/devices")
    assert (
        f"{root}/tmp/berth is in use: root (bash -c echo ready; exec sleep 1000) has {uuid}, root ("
        in answer.err
    )
    assert "waits. After `berth init` new jobs use" in answer.err
    assert os.listdir(root / "run") == []
    for process in (waiting, job):
        process.kill()
        process.wait()
    assert eventually(lambda: machine.berth("init", "--root", root).status == 0)


def test_by_force_it_makes_all_and_says_the_price(make_machine, root):
    machine = make_machine("1xH100")
    machine.env["BERTH_DIR"] = str(root / "tmp/berth")
    holder(machine)
    answer = machine.berth("init", "--root", root, "--force")
    assert answer.status == 0
    assert f"made {root}/run/berth" in answer.out
    assert f"{root}/tmp/berth is in use: root (" in answer.err
    assert "their GPUs can be granted twice" in answer.err
    assert machine.berth("init", "--root", root).status == 0  # it is there by now


def test_users_work_together_in_it(make_machine, root, as_user, tmp_path):
    for directory in (root, *root.parents):
        if str(directory).startswith("/tmp/"):
            directory.chmod(0o755)
    machine = make_machine("2xH100")
    machine.berth("init", "--root", root)
    machine.env["BERTH_DIR"] = str(root / "run/berth")
    ready(
        machine.start(
            *as_user(20001), machine.program, "run", "--", "bash", "-c", "echo ready; exec sleep 1000"
        )
    )
    bob = machine.run(*as_user(20002), machine.program, "run", "-n", "2", "--no-wait", "--", "true")
    assert bob.status == 75
    assert "owns the lease directory" not in bob.err
    (ticket,) = (root / "run/berth/leases").iterdir()
    assert machine.run(*as_user(20002), "rm", "-f", ticket).status != 0


def test_who_is_not_root_is_told_how(open_machine, as_user, tmp_path):
    answer = open_machine.run(*as_user(20001), open_machine.program, "init", "--root", tmp_path)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == "berth: init makes files that belong to root: sudo berth init\n"


def test_a_directory_of_an_earlier_version_gets_the_folder_that_it_lacks_and_what_stands_in_its_place_is_told(
    make_machine, root
):
    machine = make_machine("2xH100")
    assert machine.berth("init", "--root", root).status == 0
    folder = root / "run/berth/outcomes"
    folder.rmdir()
    answer = machine.berth("init", "--root", root)
    assert (answer.status, answer.out, answer.err) == (0, f"made {folder}\n", "")
    assert mode(folder) == (0, 0o1777)
    os.chown(folder, 4001, 4001)
    assert "is root's now" in machine.berth("init", "--root", root).out
    folder.rmdir()
    folder.write_text("")
    answer = machine.berth("init", "--root", root)
    assert answer.status == 0 and "is no folder and cannot be made" in answer.err


# The order of the queue


@pytest.fixture
def site(make_machine, root):
    """A machine of one GPU that `berth init` has set up."""
    machine = make_machine("1xH100")
    machine.leases = root / "run/berth"
    machine.env["BERTH_DIR"] = str(machine.leases)
    assert machine.berth("init", "--root", root).status == 0
    return machine


def waiters(machine) -> list[dict]:
    return machine.berth("queue", "--json").json["waiters"]


def order_told(machine) -> tuple[str, str]:
    """The level and the words of `berth doctor`."""
    found = machine.berth("doctor", "--json").json["findings"]
    (one,) = (each for each in found if each["check"] == "order of the queue")
    return one["level"], one["found"]


def test_where_it_was_called_short_requests_wait_less(site):
    held = holder(site)
    waiter(site, "--time", "10h")
    quick = waiter(site, "--time", "1m")
    eventually(lambda: [each["expected_s"] for each in waiters(site)] == [60, 36000])
    assert [each["pid"] for each in waiters(site)][0] == quick.pid
    level, words = order_told(site)
    assert level == "pass" and "short requests wait less" in words and "berth init" in words
    held.kill()
    ready(quick)


def test_the_site_file_says_another_order(site):
    (site.directory / "site.toml").write_text('expect = "none"\n')
    holder(site)
    first, quick = waiter(site, "--time", "10h"), waiter(site, "--time", "1m")
    assert [each["pid"] for each in waiters(site)] == [first.pid, quick.pid]
    assert all("expected_s" not in each for each in waiters(site))
    assert order_told(site) == ("pass", "first come, first served, as the site file says")


def test_while_somebody_waits_the_order_stays(site, root):
    (site.leases / "order").unlink()
    assert "first come, first served" in order_told(site)[1]
    holder(site)
    waiting = waiter(site)
    answer = site.berth("init", "--root", root)
    assert answer.status == 0 and "requests wait (of root), so the order of the queue stays" in answer.err
    assert not (site.leases / "order").exists()
    assert ORDER_IS_NEW[0] in site.berth("init", "--root", root, "--force").out
    (site.leases / "order").unlink()
    site.berth("init", "--root", root)
    # What is made at the next boot is what there is.
    assert "/run/berth/order" not in (root / "etc/tmpfiles.d/berth.conf").read_text()
    waiting.kill()
    waiting.wait()
    assert eventually(lambda: ORDER_IS_NEW[0] in site.berth("init", "--root", root).out)
    assert (site.leases / "order").exists()


def test_a_request_of_the_order_of_coming_is_passed_by_nobody(site):
    """It joined before the order changed, or its program does not know the order."""
    held = holder(site)
    (site.leases / "order").unlink()
    plain = waiter(site, "--time", "10h")
    (site.leases / "order").write_text("berth-order 1 expect=runs\n")
    later = waiter(site, "--time", "9h")
    quick = waiter(site, "--time", "1m")
    eventually(lambda: [each["pid"] for each in waiters(site)] == [plain.pid, quick.pid, later.pid])
    held.kill()
    ready(plain)
    plain.kill()
    ready(quick)


@pytest.mark.parametrize("kind", ["user", "open", "later", "folder", "pipe", "link", "empty", "long"])
def test_another_file_in_its_place_costs_nobody_a_start(site, root, kind):
    order = site.leases / "order"
    order.unlink()
    if kind == "folder":
        order.mkdir()
    elif kind == "pipe":
        os.mkfifo(order)
    elif kind == "link":
        order.symlink_to(root / "elsewhere")
        (root / "elsewhere").write_text("berth-order 1 expect=runs\n")
    else:
        order.write_text(
            {"later": "berth-order 2 expect=runs\n", "empty": "", "long": "x" * 100_000}.get(
                kind, "berth-order 1 expect=runs\n"
            )
        )
        if kind == "user":
            os.chown(order, 20001, 20001)
        if kind == "open":
            order.chmod(0o666)
    holder(site)
    waiting = waiter(site)
    assert "expected_s" not in waiters(site)[0]
    level, words = order_told(site)
    assert level == "warn" and words.startswith("first come, first served, since")
    waiting.kill()
    waiting.wait()
    answer = eventually(
        lambda: "requests wait" not in (told := site.berth("init", "--root", root)).err and told
    )
    if kind == "folder":
        assert "remove it, and call berth init again" in answer.err
    else:
        assert ORDER_IS_NEW[0] in answer.out and mode(order) == (0, 0o644)
        assert order_told(site)[0] == "pass"
