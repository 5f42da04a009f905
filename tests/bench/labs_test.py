"""What the part about several hosts says of its figures, without measuring anything."""

import anywhere
import labs
import markdown
import pytest
import shelf
from results import LIMIT, OURS, PEER, Figure, Table


def starts(alone, stored):
    figures = [Figure("ssh", LIMIT, values=[100.0]), Figure("Slurm srun", PEER, values=[20.0])]
    figures += [Figure("berth run --anywhere", OURS, values=[alone])]
    figures += [Figure("the same with a store", OURS, values=[stored])]
    return Table("lab-start-1", "1 host named", "ms", figures)


def test_an_etcd_that_is_not_debians_is_named_by_its_own_version(tmp_path, monkeypatch):
    etcd = tmp_path / "etcd"
    etcd.write_text("#!/bin/sh\necho etcd Version: 3.6.16; echo Git SHA: x")
    etcd.chmod(0o755)
    monkeypatch.setenv("BERTH_ETCD", str(etcd))
    told = {name: words for name, *words in shelf.versions_of_debian()}
    assert told["etcd"] == ["3.6.16", "named by BERTH_ETCD"]


def test_a_start_is_held_to_ssh_and_to_three_writes_where_there_is_a_store():
    alone, stored = anywhere.bars_of_start(starts(130.0, 140.0), 2.0)
    assert "which is 130 ms. It takes 130 ms and keeps to that." in alone
    assert "which is 136 ms. It takes 140 ms and misses it by 4.00 ms (1.03 ×)." in stored


def test_a_start_behind_slurm_says_why():
    assert "ssh logs in as the user" in " ".join(markdown.words_on(starts(110.0, 110.0)))


def test_a_hand_over_is_held_to_one_ssh_and_ten_watches():
    figures = [Figure("a bare watch", LIMIT, values=[2.0])]
    figures += [Figure("a bare watch, then ssh", PEER, values=[102.0])]
    figures += [Figure("berth run --anywhere", OURS, values=[130.0])]
    (told,) = anywhere.bar_of_hand_over(Table("lab-killed-10", "10 wait", "ms", figures))
    assert "which is 120 ms. It takes 130 ms and misses it" in told


def crowd(**more):
    rest = {"etcd": 20.0, "agents": 10.0}
    return labs.Crowd(100, memory_mb=250.0, agents_mb=300.0, placed_s=12.0, idle=rest, changing=rest, **more)


def test_a_crowd_shows_an_agents_share_and_what_misses_its_bar():
    more = crowd().figure("agents", OURS, "", "").more
    assert (more[labs.PLACED], more[labs.ONE_IDLE], more[labs.ONE_MEMORY]) == ("12.0", "0.10", "3.00")
    (told,) = labs.bars(crowd(), labs.Crowd(100, memory_mb=249.0, idle={"etcd": 1.0}), "100 agents")
    assert "etcd's memory misses its 200 MB (it takes 250 MB; with bare watches 249)" in told
    assert "etcd at rest misses its 15.0 %" in told and "an agent at rest keeps to its 0.20 %" in told


def test_where_not_all_were_placed_it_says_how_many():
    assert (
        crowd(placed="9 of 10 after 5 s").figure("agents", OURS, "", "").more[labs.PLACED]
        == "9 of 10 after 5 s"
    )


@pytest.mark.parametrize("agents, processes", [(10, 1), (250, 1), (300, 2), (1000, 4)])
def test_agents_are_dealt_out_to_processes(agents, processes):
    bench = type("Bench", (), {"program": staticmethod(str)})
    etcd = type("Etcd", (), {"url": "http://x", "port": 1})
    words = labs.commands(bench, labs.Crowd(agents), etcd, "/folder", is_bare=False)
    assert len(words) == processes and sum(int(each[3]) for each in words) == agents
    assert len({each[6] for each in words}) == processes


def test_a_start_that_names_several_hosts_and_takes_long_says_why():
    several = starts(140.0, 150.0)
    several.key = "lab-start-4"
    assert "a fifth as long" in " ".join(markdown.words_on(several))
    assert "a fifth as long" not in " ".join(markdown.words_on(starts(140.0, 150.0)))
