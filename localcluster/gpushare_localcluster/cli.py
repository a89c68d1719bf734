"""`localcluster`: a Kubernetes cluster on this machine."""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

from gpushare_localcluster import preflight
from gpushare_localcluster.build.binary import SCHEDULER, ensure_binary, ensure_program
from gpushare_localcluster.build.container_runtime import ensure_runtime
from gpushare_localcluster.build.minors import CHOICE, MINORS, Minor, chosen_minor, minor_named
from gpushare_localcluster.build.modules import ensure_helm, ensure_volcano
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.config import (
    ClusterConfig,
    Containerd,
    NodeConfig,
    control_plane_nodes,
    worker_nodes,
)
from gpushare_localcluster.directories import cluster_folder
from gpushare_localcluster.errors import LocalClusterError

NODE_COMMANDS = {
    "stop": LocalCluster.stop_node,
    "kill": LocalCluster.kill_node,
    "start": LocalCluster.start_node,
    "remove": LocalCluster.remove_node,
    "restart-kubelet": LocalCluster.restart_kubelet,
    "stop-kubelet": LocalCluster.stop_kubelet,
    "start-kubelet": LocalCluster.start_kubelet,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        return int(options.run(options) or 0)
    except LocalClusterError as error:
        print(f"localcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Passes all arguments after `kubectl` on to kubectl, options too, which argparse cannot do."""
    if "kubectl" not in arguments:
        return parser().parse_args(arguments)
    at = list(arguments).index("kubectl") + 1
    return parser().parse_args(arguments[:at], argparse.Namespace(arguments=arguments[at:]))


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="localcluster", description="A Kubernetes cluster on this machine.")
    top.add_argument("--version", action="version", version=f"%(prog)s {version('gpushare-localcluster')}")
    top.add_argument("--name", default="default", help="name of the cluster (default: %(default)s)")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    _add_up(commands)
    _add_build(commands)
    _add_simple(commands)
    _add_logs(commands)
    _add_node(
        commands.add_parser("node", help="add, stop, kill, start or remove a node, or run a command on it")
    )
    return top


Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _command(commands: Commands, name: str, purpose: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=purpose, description=purpose)
    # Both `localcluster --name x up` and `localcluster up --name x` are what people type.
    command.add_argument("--name", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return command


def _add_up(commands: Commands) -> None:
    up = _command(commands, "up", "start a cluster and wait until it is ready")
    up.add_argument("--nodes", type=int, default=3, help="number of worker nodes (default: %(default)s)")
    up.add_argument(
        "--control-planes", type=int, default=1, help="number of control planes (default: %(default)s)"
    )
    up.add_argument("--listen", default="127.0.0.1:0", help="the API server's address (default: %(default)s)")
    up.add_argument(
        "--foreground", action="store_true", help="stay in the foreground, and stop the cluster at Ctrl-C"
    )
    up.add_argument("--containerd", action="store_true", help="run real containers, from their images")
    up.add_argument(
        "--image",
        action="append",
        default=[],
        type=Path,
        metavar="ARCHIVE",
        help="give nodes this image; implies --containerd",
    )
    _add_kubernetes(up)
    up.set_defaults(run=_up)


def _add_build(commands: Commands) -> None:
    build = _command(commands, "build", "build the cluster's program and print its path")
    build.add_argument(
        "--ignore-preflight-errors",
        action="store_true",
        help="build it even if this machine cannot run a cluster",
    )
    build.add_argument(
        "--scheduler", action="store_true", help="build the checkout's own kube-scheduler instead"
    )
    build.add_argument("--volcano", action="store_true", help="build Volcano's scheduler instead")
    build.add_argument("--helm", action="store_true", help="build Helm instead")
    build.add_argument("--containerd", action="store_true", help="build containerd and runc instead")
    _add_kubernetes(build)
    build.set_defaults(run=_build)


def _add_kubernetes(command: argparse.ArgumentParser) -> None:
    minors = ", ".join(minor.name for minor in MINORS)
    command.add_argument(
        "--kubernetes",
        metavar="MINOR",
        help=f"minor version: one of {minors} (default: ${CHOICE}, else the newest)",
    )


def _kubernetes(options: argparse.Namespace) -> Minor:
    return minor_named(options.kubernetes) if options.kubernetes else chosen_minor()


def _add_simple(commands: Commands) -> None:
    _command(commands, "down", "stop a cluster").set_defaults(run=_down)
    _command(commands, "kubeconfig", "print the path of the kubeconfig").set_defaults(run=_kubeconfig)
    _command(commands, "status", "show nodes and components").set_defaults(run=_status)
    _command(commands, "preflight", "say what this machine lacks for a cluster").set_defaults(run=_preflight)
    commands.add_parser("kubectl", help="run kubectl on the cluster").set_defaults(run=_kubectl)


def _add_logs(commands: Commands) -> None:
    logs = _command(commands, "logs", "print a log")
    logs.add_argument("source", nargs="*", metavar="COMPONENT | node NAME")
    logs.set_defaults(run=_logs)


def _add_node(node: argparse.ArgumentParser) -> None:
    commands = node.add_subparsers(required=True, metavar="COMMAND")
    add = _command(commands, "add", "add a node")
    add.add_argument("node")
    add.add_argument("--control-plane", action="store_true")
    add.add_argument("--label", action="append", default=[], metavar="KEY=VALUE")
    add.set_defaults(run=_node_add)
    for name in NODE_COMMANDS:
        command = _command(commands, name, _purpose(name))
        command.add_argument("node")
        command.set_defaults(run=_node_command, command=name)
    execute = commands.add_parser("exec", help="run a command on a node")
    execute.add_argument("node")
    execute.add_argument("arguments", nargs=argparse.REMAINDER)
    execute.set_defaults(run=_node_exec)


def _purpose(command: str) -> str:
    verb, _, kubelet = command.partition("-")
    return f"{verb} {'the kubelet of ' if kubelet else ''}a node"


def _up(options: argparse.Namespace) -> None:
    cluster = LocalCluster(cluster_folder(options.name))
    # As in `start`, but before a build that takes minutes.
    preflight.check(preflight.Machine.this())
    kubernetes = _kubernetes(options)
    ensure_binary(minor=kubernetes, report=to_stderr)
    nodes = [*control_plane_nodes(options.control_planes), *worker_nodes(options.nodes)]
    config = ClusterConfig(
        nodes=nodes, listen=options.listen, containerd=_containerd(options), kubernetes=kubernetes
    )
    started = time.monotonic()
    cluster.start(config, detach=not options.foreground)
    try:
        cluster.wait_ready()
        to_stderr(f"cluster {options.name} is ready after {time.monotonic() - started:.1f} s")
        print(f"export KUBECONFIG={cluster.kubeconfig}", flush=True)
        if options.foreground:
            cluster.wait_end()
    except BaseException:
        cluster.stop()
        raise


def _containerd(options: argparse.Namespace) -> Containerd | None:
    if not options.containerd and not options.image:
        return None
    images = [path.absolute() for path in options.image]
    return Containerd(runtime=ensure_runtime(report=to_stderr), images=images)


def _down(options: argparse.Namespace) -> None:
    LocalCluster.attach(options.name).stop()
    to_stderr(f"cluster {options.name} is stopped")


def _kubeconfig(options: argparse.Namespace) -> None:
    print(LocalCluster.attach(options.name).kubeconfig)


def _preflight(_: argparse.Namespace) -> None:
    preflight.check(preflight.Machine.this())
    # make asks before it starts what takes minutes.
    chosen_minor()
    to_stderr("this machine can run a local cluster")


def _build(options: argparse.Namespace) -> None:
    if not options.ignore_preflight_errors:
        preflight.check(preflight.Machine.this())
    if options.scheduler:
        _build_scheduler(_kubernetes(options))
    elif options.volcano:
        print(ensure_volcano(report=to_stderr).scheduler)
    elif options.helm:
        print(ensure_helm(report=to_stderr))
    elif options.containerd:
        print(ensure_runtime(report=to_stderr).containerd)
    else:
        print(ensure_binary(minor=_kubernetes(options), report=to_stderr).path)


def _build_scheduler(minor: Minor) -> None:
    """What a cluster of the minor needs: nothing where the scheduler is not built of it."""
    if minor in SCHEDULER.minors:
        print(ensure_program(SCHEDULER, minor, report=to_stderr).path)
    else:
        to_stderr(f"there is none of Kubernetes {minor.name}: {SCHEDULER.sources} is not built of it")


def _status(options: argparse.Namespace) -> int:
    status = LocalCluster.attach(options.name).status()
    for name, pid in sorted(status.components.items()):
        print(f"{name:<26} running (pid {pid})")
    for node in status.nodes:
        state = f"on (pid {node.pid})" if node.is_on else "off"
        print(f"node {node.name:<21} {state:<14} {node.address} {node.failure}".rstrip())
    print("waiting for: " + "; ".join(status.missing) if status.missing else "ready")
    return 1 if status.missing else 0


def _kubectl(options: argparse.Namespace) -> int:
    cluster = LocalCluster.attach(options.name)
    return subprocess.run(cluster.kubectl_command(options.arguments), check=False).returncode


def _logs(options: argparse.Namespace) -> None:
    # Not by `attach`: logs are needed most when the cluster has ended.
    logs = LocalCluster(cluster_folder(options.name)).log_files()
    source = " ".join(options.source)
    if source not in logs:
        raise LocalClusterError(f"Say whose log to print: {', '.join(logs)}.")
    _print_file(logs[source])


def _print_file(path: Path) -> None:
    if not path.exists():
        raise LocalClusterError(f"There is no log {path}.")
    with path.open("rb") as log:
        while block := log.read(1 << 20):
            sys.stdout.buffer.write(block)


def _node_add(options: argparse.Namespace) -> None:
    labels = dict(_label(text) for text in options.label)
    cluster = LocalCluster.attach(options.name)
    cluster.add_node(NodeConfig(name=options.node, labels=labels, control_plane=options.control_plane))
    cluster.wait_ready()


def _label(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator:
        raise LocalClusterError(f"A label is written KEY=VALUE, not {text!r}.")
    return key, value


def _node_command(options: argparse.Namespace) -> None:
    NODE_COMMANDS[options.command](LocalCluster.attach(options.name), options.node)


def _node_exec(options: argparse.Namespace) -> int:
    arguments = options.arguments[1:] if options.arguments[:1] == ["--"] else options.arguments
    command = LocalCluster.attach(options.name).node_command(options.node, arguments)
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
