"""The simulated machine of the tests itself."""

import jobs
from simulated_machine import Machine


def test_nothing_outlives_a_machine(tmp_path):
    machine = Machine(tmp_path, "1xH100")
    deaf = machine.start(
        "bash", "-c", "trap '' TERM HUP; (while :; do sleep 0.01; done) >&- 2>&- & echo $!; wait"
    )
    pid = int(deaf.stdout.readline())
    deaf.kill()
    deaf.wait()
    assert jobs.state(pid) != "gone"
    machine.close()
    assert jobs.state(pid) in ("gone", "Z")
