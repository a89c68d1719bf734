"""Every place in the code where something from outside is decoded, found in the source, and who fuzzes it.

What decodes is known by the calls it makes: JSON, YAML, protobuf, pydantic, text to numbers and times.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "gpushare_core": ROOT / "core",
    "gpushare_operator": ROOT / "operator",
    "gpushare_plugin": ROOT / "plugin",
    "gpushare_extender": ROOT / "extender",
    "gpushare_hostctl": ROOT / "hostctl",
    "gpushare_cli": ROOT / "cli",
}
NAMES = frozenset({"int", "float"})
"""Functions that read a text where their argument is one."""
METHODS = frozenset(
    {
        "decode",
        "loads",
        "convert",
        "FromString",
        "model_validate",
        "fromisoformat",
        "safe_load",
        "safe_load_all",
        "compose",
        "construct_document",
        "SafeLoader",
        "read_text",
        "read_bytes",
        "ip_address",
        "b64decode",
        "urlsplit",
        "unpack",
    }
)
"""Methods of decoders and functions of modules that decode."""


def decoding_functions() -> set[str]:
    """Returns the functions with such a call in them, as ``module:qualified name``."""
    found: set[str] = set()
    for package, folder in PACKAGES.items():
        for path in (folder / package).rglob("*.py"):
            if not path.stem.endswith("_pb2"):
                module = ".".join(path.relative_to(folder).with_suffix("").parts)
                found.update(f"{module}:{name}" for name in _decoding(ast.parse(path.read_text())))
    return found


def _decoding(tree: ast.AST, above: tuple[str, ...] = ()) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _decoding(node, (*above, node.name))
        else:
            if isinstance(node, ast.Call) and above and _decodes(node):
                yield ".".join(above)
            yield from _decoding(node, above)


def _decodes(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in NAMES and not all(isinstance(argument, ast.Constant) for argument in call.args)
    return isinstance(function, ast.Attribute) and function.attr in METHODS


CODECS = "gpushare_core.dialects"
FUZZED_BY: dict[str, str] = {
    "gpushare_core.api.api_object:ApiObject.from_json": (
        "gpushare_plugin.cluster.share_node_watch:ShareNodeWatch._store"
    ),
    "gpushare_plugin.cluster.share_node_watch:_version_of": (
        "gpushare_plugin.cluster.share_node_watch:ShareNodeWatch._store"
    ),
    "gpushare_core.audit.extender_report:_decoded": "gpushare_core.audit.extender_report:decode_reports",
    "gpushare_core.placement.quantity:_billionths": "gpushare_core.placement.quantity:read_amount",
    "gpushare_core.placement.quantity:_exponent": "gpushare_core.placement.quantity:read_amount",
    "gpushare_plugin.kubelet.wire:_small_pod": "gpushare_plugin.kubelet.pod_resources:read_assigned",
    "gpushare_plugin.kubelet.checkpoint:_stored": "gpushare_plugin.kubelet.checkpoint:stored_answers",
    "gpushare_operator.cluster.readers.share_nodes:_memory_asked": (
        "gpushare_operator.cluster.readers.share_nodes:read_share_node"
    ),
    "gpushare_cli.gather.host:read_checkpoint": "gpushare_plugin.kubelet.checkpoint:stored_answers",
    "gpushare_core.allocation_annotation:_beginning": "gpushare_core.allocation_annotation:decode_allocation",
    "gpushare_core.dialects.aliyun:_read_containers": f"{CODECS}.aliyun:AliyunCodec.read_legacy",
    "gpushare_core.dialects.legacy:read_number": f"{CODECS}.aliyun:AliyunCodec.read_legacy",
    "gpushare_core.kube.response:decoded": "gpushare_core.kube.client:KubeClient.read",
    "gpushare_core.kube.credentials:parsed_kubeconfig": "gpushare_core.kube.credentials:from_kubeconfig",
    "gpushare_core.kube.credentials:_pem": "gpushare_core.kube.credentials:from_kubeconfig",
    "gpushare_core.kube.tls:TlsParts.context": "gpushare_core.kube.credentials:from_kubeconfig",
    "gpushare_core.kube.tls:_content": "gpushare_core.kube.credentials:from_kubeconfig",
    "gpushare_core.kube.follow:_Follow._see": "gpushare_core.kube.follow:follow",
    "gpushare_core.kube.follow:_Follow._watch_once": "gpushare_core.kube.follow:follow",
    "gpushare_core.kube.follow:as_json": "gpushare_core.kube.follow:follow",
    "gpushare_core.kube.lease:LeaseObserver.seconds_left": "gpushare_core.kube.lease:LeaseObserver.observe",
    "gpushare_core.text.whole_number:whole_number": (
        "gpushare_operator.cluster.readers.extender_leases:read_calls"
    ),
    "gpushare_core.text.whole_number:version_number": "gpushare_plugin.decide.held.pods:read_pod",
    "gpushare_core.text.yaml_edit:_constructed": "gpushare_core.text.yaml_edit:documents",
    "gpushare_core.text.yaml_edit:_root": "gpushare_core.text.yaml_edit:insert_item",
    "gpushare_core.text.yaml_edit:_is_plain": "gpushare_core.text.yaml_edit:replace_scalar",
    "gpushare_extender.bind.binder:Binder._read_pod": "gpushare_extender.verbs.server:ExtenderApi.bind",
    "gpushare_extender.bind.binding_write:BindingWrite._request": (
        "gpushare_extender.verbs.server:ExtenderApi.bind"
    ),
    "gpushare_core.scheduling.preemption.bound_pods:_seconds": (
        "gpushare_core.scheduling.preemption.bound_pods:PodList.pods"
    ),
    "gpushare_extender.verbs.server:_named": "gpushare_extender.verbs.server:ExtenderApi.filter",
    "gpushare_extender.transport.connection:port_of": "gpushare_extender.verbs.server:ExtenderApi.filter",
    "gpushare_extender.transport.http2:Http2Requests._open": (
        "gpushare_extender.transport.http2:Http2Requests.data_received"
    ),
    "gpushare_extender.transport.http2:Http2Requests._send": (
        "gpushare_extender.transport.http2:Http2Requests.data_received"
    ),
    "gpushare_core.scheduling.objects.holder:unix_seconds": (
        "gpushare_core.scheduling.objects.holder:read_pod"
    ),
    "gpushare_hostctl.decide.scheduler.health_endpoint:_port": (
        "gpushare_hostctl.decide.scheduler.health_endpoint:find"
    ),
    "gpushare_hostctl.errors:utf8_text": "gpushare_hostctl.decide.scheduler.manifest:parse",
    "gpushare_hostctl.decide.scheduler.manifest:_flag_words": (
        "gpushare_hostctl.decide.scheduler.manifest:parse"
    ),
    "gpushare_hostctl.decide.scheduler.manifest_edit:_place_of_ours": (
        "gpushare_hostctl.decide.scheduler.manifest_edit:add"
    ),
    "gpushare_hostctl.decide.run.process_identity:_address": (
        "gpushare_hostctl.decide.run.process_identity:listening_sockets"
    ),
    "gpushare_hostctl.decide.run.process_identity:_socket": (
        "gpushare_hostctl.decide.run.process_identity:listening_sockets"
    ),
    "gpushare_hostctl.decide.scheduler.scheduler_config:_burst": (
        "gpushare_hostctl.decide.scheduler.rendering:render"
    ),
    "gpushare_hostctl.decide.run.snapshot:HostSnapshot.record": "gpushare_hostctl.decide.run.record:decode",
    "gpushare_hostctl.host.health_probe:_read_table": (
        "gpushare_hostctl.decide.run.process_identity:listening_sockets"
    ),
    "gpushare_hostctl.main:_render": "gpushare_hostctl.decide.scheduler.rendering:render",
    "gpushare_hostctl.arguments:_seconds": "gpushare_hostctl.arguments:parse",
    "gpushare_operator.cluster.managed_fields:_names": "gpushare_operator.cluster.managed_fields:managers",
    "gpushare_operator.cluster.readers.jobs:_asked": "gpushare_operator.cluster.readers.jobs:read_job",
    "gpushare_operator.cluster.readers.share_nodes:_conditions_by_type": (
        "gpushare_operator.cluster.readers.share_nodes:read_share_node"
    ),
    "gpushare_operator.cluster.readers.jobs:_exit_code": "gpushare_operator.cluster.readers.jobs:read_job",
    "gpushare_operator.cluster.readers.pods:_last_words": "gpushare_operator.cluster.readers.pods:read_pod",
    "gpushare_operator.cluster.readers.policies:_policy_spec": (
        "gpushare_operator.cluster.readers.policies:read_policy"
    ),
    "gpushare_operator.cluster.readers.policies:_policy_status": (
        "gpushare_operator.cluster.readers.policies:read_policy"
    ),
    "gpushare_operator.cluster.readers.share_nodes:_shared_totals": (
        "gpushare_operator.cluster.readers.share_nodes:read_share_node"
    ),
    "gpushare_operator.cluster.readers.share_nodes:_shared_spec": (
        "gpushare_operator.cluster.readers.share_nodes:read_share_node"
    ),
    "gpushare_operator.backends.kube_scheduler.job_history:Attempt.report": (
        "gpushare_operator.backends.kube_scheduler.job_history:Attempt.report"
    ),
    "gpushare_operator.backends.volcano.config_edit:_insert_plugin": (
        "gpushare_operator.backends.volcano.config_edit:enable"
    ),
    "gpushare_operator.backends.volcano.config_edit:_without": (
        "gpushare_operator.backends.volcano.config_edit:disable"
    ),
    "gpushare_plugin.cluster.container_names:container_ids": "gpushare_plugin.decide.held.pods:read_pod",
    "gpushare_plugin.cluster.pod_watch:read_one": "gpushare_plugin.decide.held.pods:read_pod",
    "gpushare_plugin.decide.held.checkpoint:_number": (
        "gpushare_plugin.kubelet.checkpoint:CheckpointFile.read"
    ),
    "gpushare_plugin.decide.units.foreign_units:_split": (
        "gpushare_plugin.kubelet.checkpoint:CheckpointFile.read"
    ),
    "gpushare_plugin.decide.held.pods:is_bound_to": "gpushare_plugin.decide.held.pods:read_pod",
    "gpushare_plugin.decide.held.pods:read_metadata": "gpushare_plugin.decide.held.pods:read_pod",
    "gpushare_plugin.devices.inventory.inventory_file:_data": (
        "gpushare_plugin.devices.inventory.inventory_file:read_inventory"
    ),
    "gpushare_plugin.devices.inventory.inventory_file:_HealthFields.read": (
        "gpushare_plugin.devices.inventory.inventory_file:read_inventory"
    ),
    "gpushare_plugin.devices.inventory.inventory_file:_root": (
        "gpushare_plugin.devices.inventory.inventory_file:read_inventory"
    ),
    "gpushare_plugin.devices.inventory.inventory_file:_text": (
        "gpushare_plugin.devices.inventory.inventory_file:read_inventory"
    ),
    "gpushare_plugin.devices.nvml.library:_numa_node": "gpushare_plugin.devices.nvml.library:_facts",
    "gpushare_plugin.devices.nvml.library:_recovery_action": "gpushare_plugin.devices.nvml.library:_facts",
    "gpushare_plugin.devices.nvml.library:_remapping_failures": "gpushare_plugin.devices.nvml.library:_facts",
    "gpushare_plugin.devices.nvml.use_library:_cgroup": "gpushare_plugin.decide.use.cgroups:cgroup_owners",
    "gpushare_plugin.devices.simulated.simulation:_indices": (
        "gpushare_plugin.devices.simulated.simulation:read_simulation"
    ),
    "gpushare_plugin.devices.simulated.simulation:_with": (
        "gpushare_plugin.devices.simulated.simulation:read_simulation"
    ),
    "gpushare_plugin.devices.simulated.simulation:_xid": (
        "gpushare_plugin.devices.simulated.simulation:read_simulation"
    ),
    "gpushare_plugin.kubelet.checkpoint:_units": "gpushare_plugin.kubelet.checkpoint:stored_answers",
    "gpushare_plugin.kubelet.checkpoint:_decoded": "gpushare_plugin.kubelet.checkpoint:CheckpointFile.read",
    "gpushare_plugin.kubelet.checkpoint:_ours": "gpushare_plugin.kubelet.checkpoint:CheckpointFile.read",
    "gpushare_plugin.kubelet.wire:_take_devices": "gpushare_plugin.kubelet.pod_resources:read_assigned",
    "gpushare_plugin.kubelet.wire:_preference": "gpushare_plugin.kubelet.wire:preference_requests",
    "gpushare_plugin.kubelet.wire:_decoded": "gpushare_plugin.kubelet.pod_resources:read_assigned",
    "gpushare_cli.decide.ledger:booking_of": "gpushare_cli.decide.objects.pending_pod:read_pending_pod",
    "gpushare_cli.decide.why.causes.amounts:_bytes": "gpushare_cli.decide.why.explain:explain",
    "gpushare_cli.decide.why.causes.resources:_number": "gpushare_cli.decide.why.explain:explain",
    "gpushare_cli.decide.why.words:seconds_since": "gpushare_cli.decide.why.explain:explain",
    "gpushare_cli.login.exec_plugin:exec_plugin": "gpushare_cli.login.cluster_login:cluster_login",
    "gpushare_cli.login.exec_plugin:_told_of_cluster": "gpushare_cli.login.cluster_login:cluster_login",
    "gpushare_cli.login.impersonation:impersonation_headers": (
        "gpushare_cli.login.cluster_login:cluster_login"
    ),
    "gpushare_cli.login.oidc:oidc_login": "gpushare_cli.login.cluster_login:cluster_login",
    "gpushare_cli.login.duration:_go_duration": "gpushare_cli.login.duration:read_duration",
    "gpushare_cli.login.environment_proxy:_is_direct": (
        "gpushare_cli.login.environment_proxy:proxy_of_environment"
    ),
    "gpushare_cli.decide.inspection.node_reader:_shared_node": (
        "gpushare_cli.decide.inspection.node_reader:shared_nodes"
    ),
    "gpushare_cli.decide.objects.pod_status:status_of": "gpushare_cli.decide.why.explain:explain",
    "gpushare_cli.decide.scheduling.node_rules:_compares": "gpushare_cli.decide.why.explain:explain",
    "gpushare_cli.decide.scheduling.written_pod:written_pod": "gpushare_cli.decide.why.explain:explain",
    "gpushare_cli.decide.drain.drain_plan:bound_pod": "gpushare_cli.decide.drain.drain_plan:drain_plan",
    "gpushare_cli.decide.objects.workload:_as": "gpushare_cli.decide.objects.workload:workloads_of",
    "gpushare_cli.decide.simulation.redivision:_card_without": (
        "gpushare_cli.decide.drain.drain_plan:drain_plan"
    ),
    "gpushare_cli.decide.simulation.redivision:_divided_card": (
        "gpushare_cli.decide.simulation.simulation:simulate"
    ),
    "gpushare_cli.decide.simulation.redivision:_sum": "gpushare_cli.decide.drain.drain_plan:drain_plan",
    "gpushare_cli.decide.simulation.redivision:readable_share_node": (
        "gpushare_cli.decide.simulation.simulation:simulate"
    ),
    "gpushare_cli.decide.simulation.redivision:simulated_share_node": (
        "gpushare_cli.decide.simulation.policy_effect:policy_effect"
    ),
    "gpushare_cli.decide.simulation.redivision:total_units": (
        "gpushare_cli.decide.simulation.simulation:simulate"
    ),
    "gpushare_cli.decide.simulation.simulated_pod:_is_readable": (
        "gpushare_cli.decide.simulation.simulated_pod:readable_pods"
    ),
    "gpushare_cli.decide.simulation.simulated_pod:shape_of_pod": (
        "gpushare_cli.decide.simulation.simulation:simulate"
    ),
    "gpushare_cli.gather.manifests:_yaml_documents": "gpushare_cli.gather.manifests:documents_of",
    "gpushare_cli.gather.simulation.cluster_state:_asks": (
        "gpushare_cli.gather.simulation.cluster_state:StateReader.waiting"
    ),
}
"""A function that decodes -> the entry point above it by which a test reaches it."""

OWN: dict[str, str] = {
    "gpushare_cli.commands.time_argument:whole_number_of": "an argument, whose digits are looked at first",
    "gpushare_cli.commands.web:_port": "an argument, whose digits are looked at first",
    "gpushare_cli.gather.web.followed_nodes:_named": "a GPUShareNode, and `follow` lists again if it is none",
    "gpushare_cli.web.page_files:page_files": "files of our own",
    "gpushare_cli.web.server:_version": "a number, whose digits are looked at first",
    "gpushare_cli.gather.shared_cards:_name_of": "a GPUShareNode, whose errors are caught",
    "gpushare_cli.gather.simulation.cluster_state:StateReader._pods_of": "pods, whose errors are caught",
    "gpushare_cli.changes.policy_deletion:_read": "a policy, and `follow` lists again if it is none",
    "gpushare_cli.arguments:_seconds": "an argument, whose ValueError is caught",
    "gpushare_cli.login.cluster_login:_namespace_of_pod": "a file that the kubelet writes for the pod",
    "gpushare_cli.login.exec_plugin:ExecPlugin._information": "bytes that were just encoded",
    "gpushare_cli.login.oidc:OidcLogin._basic": "bytes that were just encoded",
    "gpushare_cli.login.oidc:OidcLogin._tls": "certificates, whose ValueError is caught",
    "gpushare_cli.login.plugin_process:_RunningPlugin.end": "a number of ours",
    "gpushare_cli.decide.use.top_report:_container_rows": "a truth value of ours",
    "gpushare_cli.output.format:_json_text": "bytes that were just encoded",
    "gpushare_cli.reference:main": "a truth value of ours",
    "gpushare_cli.views.holders:_pods": "a time that we have just written",
    "gpushare_cli.login.plugin_process:_line": "text, in which what is none is replaced",
    "gpushare_cli.login.stored_tokens:store_tokens": "a file that was read before; any error is caught",
    "gpushare_cli.output.printer:Printer._parts": "bytes that were just encoded",
    "gpushare_cli.output.terminal:_columns": "digits alone, and few",
    "gpushare_cli.wording:age_text": "a number of ours",
    "gpushare_cli.decide.why.words:seconds_since": "a number of ours",
    "gpushare_cli.decide.why.running.isolation:_excess": "a number of ours",
    "gpushare_operator.decide.evictions:_eviction": "a number of ours",
    "gpushare_cli.completion.main:max_seconds": "a variable, whose ValueError is caught",
    "gpushare_cli.commands.audit:_seconds": "an argument, whose ValueError is caught",
    "gpushare_cli.commands.time_argument:seconds_of": "an argument, whose ValueError is caught",
    "gpushare_core.api.crd:drifted": "the files that the repository itself has",
    "gpushare_core.text.printable:printable": "bytes that were just encoded, without what a cut leaves",
    "gpushare_core.api.timestamps:read_rfc3339": "datetime.fromisoformat alone, whose ValueError is caught",
    "gpushare_core.audit.extender_report:encode_report": "bytes that were just encoded",
    "gpushare_core.kube.credentials:_basic": "bytes that were just encoded",
    "gpushare_core.kube.credentials:RenewedToken._read": "a token, which is passed on as it is",
    "gpushare_core.kube.transport.direct:_PooledConnection.on_header": "ASCII, anything else is replaced",
    "gpushare_core.allocation_annotation:encode_allocation": "bytes that were just encoded",
    "gpushare_core.kube.backoff:backoff_delay": "a number of ours",
    "gpushare_core.kube.follow:_Follow._watch_request": "a number of ours",
    "gpushare_core.process.metrics:Gauge.at": "a number of ours",
    "gpushare_extender.bind.lease:BindLease.__post_init__": "a constant",
    "gpushare_core.scheduling.objects.pod:_request": "bytes that were encoded of what was decoded",
    "gpushare_extender.arguments:_address": "an argument that the operator writes",
    "gpushare_core.kube.credentials:own_namespace": "a file that the kubelet writes for the pod",
    "gpushare_hostctl.arguments:_weight": "one of a hundred texts",
    "gpushare_hostctl.decide.scheduler.manifest_edit:_added": "an index of the parsed document",
    "gpushare_hostctl.decide.scheduler.manifest_edit:_removed": "an index of the parsed document",
    "gpushare_hostctl.host.extender_probe:_context": "keys that hostctl itself made and checked",
    "gpushare_operator.cluster.heartbeats:_duration": "32 bits, which the API server has checked",
    "gpushare_plugin.watchdog:end": "the clock",
    "gpushare_operator.main:_lease_seconds": "an argument, refused by is_number before",
    "gpushare_operator.main:serve": "a truth value of ours",
    "gpushare_operator.status.totals:amounts_of": "a truth value of ours",
    "gpushare_plugin.decide.report.annotation_repairs:_dialect_annotations": "a dialect's own words",
    "gpushare_plugin.decide.health.card_health:_fallen": "numbers of ours",
    "gpushare_plugin.devices.nvml.events:XidEvents._waiting": "an integer of a C structure",
    "gpushare_plugin.devices.nvml.use_library:_used": "an integer of a C structure",
    "gpushare_core.health_server:_request_line": "latin-1, which decodes everything",
}
"""A function that decodes nothing from outside -> why."""
