"""Play the demo: ``python -m demo [--mode Slices] [--keep 0]``."""

import argparse
import os
import sys

from demo.command_line import NotAnsweredError
from demo.console import Console
from demo.policy_conditions import NotInTimeError
from demo.replacement import NotReplacedError, require_consent
from demo.scenarios.scenario import Scenario
from demo.scenarios.table import scenario_of
from demo.stage import DemoFailedError, Stage
from demo.steps import Demo
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.config import ClusterConfig
from gpushare_localcluster.directories import cluster_folder
from gpushare_localcluster.errors import LocalClusterError

NAME = "demo"

HINTS = """\
The cluster stays up. Play with it:
  export KUBECONFIG=$(make kubeconfig)
  alias kubectl=".venv/bin/localcluster --name demo kubectl"    (if you have no kubectl)
  export PATH=$PWD/.venv/bin:$PATH              (for kubectl gpushare)
  kubectl get gpushare                          policies and nodes
  kubectl gpushare                              whether all is well
  kubectl gpushare inspect                      every card, and who has what of it"""
WAITING_HINT = """\
  kubectl gpushare why {:<24} why it waits"""
UNDO_HINTS = """\
Undo (labels, GPUShareNodes, DaemonSets and the scheduler's configuration go; pods keep running):
  kubectl gpushare undo
Stop:
  make stop"""
INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--mode", default="Memory", help="of sharing: Memory, Slices, Exclusive or Mixed")
    parser.add_argument("--keep", type=int, choices=(0, 1), default=1, help="0: show the undo and stop")
    parser.add_argument(
        "--replace",
        type=int,
        choices=(0, 1),
        default=0,
        help="1: end a demo cluster that runs without asking",
    )
    return parser.parse_args(arguments)


def clear_the_stage(cluster: LocalCluster, console: Console, *, replace: bool) -> None:
    """Stops a running demo cluster, if the person who started the demo agrees.

    Raises:
        NotReplacedError: the cluster keeps running.
    """
    if not cluster.is_running():
        return
    if not replace:
        require_consent(input if sys.stdin.isatty() else None)
    console.step("Stopping the demo cluster that is running already")
    cluster.stop()


def play(cluster: LocalCluster, console: Console, scenario: Scenario, *, keep: bool) -> None:
    """Raises ``KeyboardInterrupt`` after Ctrl-C, when the cluster is stopped."""
    workers = "1 worker" if scenario.workers == 1 else f"{scenario.workers} workers"
    kubelets = scenario.workers + 1
    console.step(
        f"Starting etcd, API server, controllers and {kubelets} kubelets (1 control plane, {workers})"
    )
    try:
        cluster.start(ClusterConfig.of_size(workers=scenario.workers), detach=keep)
        cluster.wait_ready()
        play_on(Demo(Stage(cluster, console), scenario), keep=keep)
    except KeyboardInterrupt:
        keep = False
        raise
    finally:
        if not keep:
            console.step("Stopping")
            cluster.stop()


def play_on(demo: Demo, *, keep: bool) -> None:
    before = demo.scheduler_manifest()
    demo.play()
    if keep:
        demo.stage.step("Ready")
        demo.stage.say(hints(demo.scenario))
    else:
        demo.undo(before)


def hints(scenario: Scenario) -> str:
    waiting = [WAITING_HINT.format(scenario.waiting_pod)] if scenario.waiting_pod else []
    return "\n".join((HINTS, *waiting, UNDO_HINTS))


def main() -> int:
    options = parse(sys.argv[1:])
    try:
        scenario = scenario_of(options.mode)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    cluster, console = LocalCluster(cluster_folder(NAME)), Console()
    try:
        clear_the_stage(cluster, console, replace=bool(options.replace))
        play(cluster, console, scenario, keep=bool(options.keep))
    except NotReplacedError as error:
        print(error, file=sys.stderr)
        return 1
    except (DemoFailedError, NotAnsweredError, NotInTimeError, LocalClusterError) as error:
        console.step(f"Failed: {error}")
        if options.keep:
            console.say("What there is of the cluster stays up to look at it; make stop ends it.")
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    os.environ.pop("KUBECONFIG", None)
    sys.exit(main())
