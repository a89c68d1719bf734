"""Play the demo: ``python -m demo [--keep 0]``."""

import argparse
import os
import sys

from demo.console import Console
from demo.policy_conditions import NotInTimeError
from demo.steps import Demo, DemoFailedError
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
from gpushare_localcluster.directories import cluster_folder
from gpushare_localcluster.errors import LocalClusterError

NAME = "demo"

HINTS = """\
The cluster stays up. Play with it:
  export KUBECONFIG=$(make kubeconfig)
  alias kubectl=".venv/bin/localcluster --name demo kubectl"    (if you have no kubectl)
  kubectl get gpushare                          policies and nodes
  kubectl describe pod units-20                 why it waits
Undo (labels, GPUShareNodes, DaemonSets and the scheduler's configuration go; pods keep running):
  kubectl delete gpusharepolicy default
Stop:
  make stop"""


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--keep", type=int, choices=(0, 1), default=1, help="0: show the undo and stop")
    return parser.parse_args()


def play(console: Console, *, keep: bool) -> None:
    cluster = LocalCluster(cluster_folder(NAME))
    if cluster.is_running():
        console.step("Stopping the demo cluster that is running already")
        cluster.stop()
    console.step("Starting etcd, API server, controllers and 4 kubelets (1 control plane, 3 workers)")
    cluster.start(ClusterConfig.of_size(workers=3), detach=bool(keep))
    try:
        cluster.wait_ready()
        play_on(Demo(cluster, console), keep=keep)
    finally:
        if not keep:
            console.step("Stopping")
            cluster.stop()


def play_on(demo: Demo, *, keep: bool) -> None:
    before = demo.scheduler_manifest()
    demo.play()
    if keep:
        demo.console.step("Ready")
        demo.console.say(HINTS)
    else:
        demo.undo(before)


def main() -> int:
    console = Console()
    try:
        play(console, keep=bool(parse().keep))
    except (DemoFailedError, NotInTimeError, LocalClusterError) as error:
        console.step(f"Failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    os.environ.pop("KUBECONFIG", None)
    sys.exit(main())
