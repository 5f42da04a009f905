"""The simulated machine of the tests itself."""

import jobs
from lab import Lab


def test_nothing_outlives_a_lab(tmp_path):
    lab = Lab(tmp_path, "1xH100")
    deaf = lab.start(
        "bash", "-c", "trap '' TERM HUP; (while :; do sleep 0.01; done) >&- 2>&- & echo $!; wait"
    )
    pid = int(deaf.stdout.readline())
    deaf.kill()
    deaf.wait()
    assert jobs.state(pid) != "gone"
    lab.close()
    assert jobs.state(pid) in ("gone", "Z")
