"""What hostctl finds on a host beside the manifest, and what it is called with: its record, tables, flags."""

import json
from dataclasses import asdict

from hypothesis import example, given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.manifests import configurations
from tests.fuzz.strategies.odd_json import encoded, mutated, nested, odd_texts
from tests.samples.hostctl import EXTENDER, FRESH, PATHS, file, planned

from gpushare_hostctl import arguments
from gpushare_hostctl.decide.run import plan, record
from gpushare_hostctl.decide.run.process_identity import listening_sockets
from gpushare_hostctl.decide.run.snapshot import HostSnapshot
from gpushare_hostctl.decide.run.status import read_status
from gpushare_hostctl.decide.scheduler.rendering import Question, render
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import NeedsPersonError

PLANNED = planned(FRESH)
RECORD = {
    "version": record.VERSION,
    **asdict(PLANNED.record),
    "pending": {"sha256": "x", "before": {"sockets": [1], "certificate": None}},
}


@fuzzes(record.decode, plan.restore, few=30)
@given(encoded(mutated(RECORD)) | st.binary(max_size=20))
@example(nested(100_000))
@example(json.dumps({**RECORD, "backup": ["x"]}).encode())
@example(json.dumps({**RECORD, "config": {}}).encode())
@example(json.dumps({**RECORD, "written": 5}).encode())
@example(json.dumps({**RECORD, "original": {"sha256": [], "mode": "x", "uid": None, "gid": {}}}).encode())
@example(b"\xff")
def test_a_damaged_record_is_refused_with_a_reason(content: bytes) -> None:
    snapshot = HostSnapshot(paths=PATHS, manifest=PLANNED.manifest, files={record.FILE_NAME: file(content)})
    try:
        found = record.decode(content)
        read_status(snapshot)
        plan.restore(snapshot)
        plan.install(snapshot, source=None, engine=EXTENDER)
    except NeedsPersonError as error:
        assert str(error)
    else:
        assert record.decode(found.encode()) == found


_LINES = st.sampled_from(
    [
        "  0: 0100007F:2813 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 12345 1",
        "  0: 0100007F:2813 00000000:0000 0A 0 0 0 0 0 x 1",
        "  0: GGGGGGGG:2813 00000000:0000 0A 0 0 0 0 0 1 1",
        "  0: 01:2813 00000000:0000 0A 0 0 0 0 0 1 1",
        "  0: :2813 00000000:0000 0A 0 0 0 0 0 1 1",
        "  0: 0100007F:2813 00000000:0000 0A 0 0 0 0 0 " + "9" * 5000,
        "  0: " + "0" * 64 + ":2813 00000000:0000 0A 0 0 0 0 0 1 1",
        "  0: FFFFFFFFFFFF:2813 00000000:0000 0A 0 0 0 0 0 1 1",
    ]
)


@fuzzes(listening_sockets)
@given(
    st.lists(_LINES | odd_texts, max_size=4).map(lambda lines: "\n".join(["head", *lines])),
    st.sampled_from(["127.0.0.1", "::1", "", "x", "0.0.0.0"]),  # noqa: S104
)
def test_a_table_of_sockets_tells_what_it_can(table: str, host: str) -> None:
    found = listening_sockets([table], host=host, port=0x2813)
    assert found is None or all(isinstance(inode, int) for inode in found)


_FLAGS = st.lists(
    st.sampled_from(
        [
            "--kube-api-qps=nan",
            "--kube-api-qps=inf",
            "--kube-api-qps=1e400",
            "--kube-api-burst=" + "9" * 5000,
            "--kube-api-burst=9999999999",
            "--kube-api-burst=-1",
            "--kube-api-qps=5",
            "--config",
            "--config=",
            "--profiling=perhaps",
            "--kubeconfig=$(X)",
            "--",
            "-",
            "--=",
            "--kube-api-content-type=\udcff",
        ]
    )
    | odd_texts,
    max_size=4,
)


@fuzzes(render, few=30)
@given(_FLAGS, st.none() | configurations(), odd_texts | st.just("1.36"), odd_texts)
def test_a_rendering_is_usable_or_refused_with_a_reason(
    flags: list[str], config: str | None, version: str, target: str
) -> None:
    question = Question(
        extender=EXTENDER,
        folder="/etc/kubernetes/ours",
        target=target,
        config=None if config is None else config.encode("utf-8", "surrogatepass"),
        flags=SchedulerFlags(tuple(flags)),
        version=version,
    )
    try:
        rendered = render(question)
    except NeedsPersonError as error:
        assert str(error)
    else:
        assert EXTENDER.url.encode() in rendered.configuration
        assert b".nan" not in rendered.configuration
        assert b".inf" not in rendered.configuration


COMMANDS = ("install", "restore", "status", "keys", "render", "dedicated")


@fuzzes(arguments.parse)
@given(
    st.sampled_from(["install", "restore", "status", "keys", "render", "dedicated"]),
    st.lists(odd_texts, max_size=3),
)
def test_arguments_are_taken_or_refused_with_usage(command: str, words: list[str]) -> None:
    try:
        arguments.parse([command, *words])
    except SystemExit as error:
        assert error.code in (0, 2)
