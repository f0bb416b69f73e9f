"""A test in Python: python3 -m unittest. It needs actorlet and kubectl in PATH, or in ACTORLET and KUBECTL."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import unittest

HERE = pathlib.Path(__file__).parent
ACTORLET = os.environ.get("ACTORLET", "actorlet")
KUBECTL = os.environ.get("KUBECTL", "kubectl")


@contextlib.contextmanager
def fleet(file):
    """Gives the path of a kubeconfig when all nodes are Ready, and ends the fleet in whatever way the test ends."""
    read, write = os.pipe()
    command = [ACTORLET, "fleet", str(file), "--api", "local", "--json", "--ready-fd", str(write), "--socket", ""]
    process = subprocess.Popen(command, pass_fds=[write], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    os.close(write)
    try:
        with os.fdopen(read) as ready:
            line = ready.readline()
        if not line:
            raise RuntimeError("the fleet did not become ready: its standard error says why")
        yield json.loads(line)["kubeconfig"]
    finally:
        process.send_signal(signal.SIGINT)
        report, _ = process.communicate(timeout=60)
    # With --json: steps, expectations, percentiles, requests.
    assert json.loads(report)["overview"]["nodes"]["total"] == 20
    assert process.returncode == 0


class Website(unittest.TestCase):
    def test_is_refused_without_replicas(self):
        with fleet(HERE.parent / "fleet.yaml") as kubeconfig:
            website = {"apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "x"}, "spec": {}}
            create = [KUBECTL, "--kubeconfig", kubeconfig, "create", "-f", "-"]
            tried = subprocess.run(create, input=json.dumps(website), capture_output=True, text=True)
            self.assertIn("spec.replicas: Required value", tried.stderr)


if __name__ == "__main__":
    unittest.main()
