"""Names of objects of the cluster that a command line names."""

import argparse
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import quote

from msgspec import Struct

from gpushare_cli.completion.candidates import NameSource, Suggestion, value_name
from gpushare_cli.completion.typed_words import TypedWords
from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.login.cluster_login import cluster_login
from gpushare_cli.login.kubeconfig import Kubeconfig, read_kubeconfig
from gpushare_cli.login.plugin_process import NOBODY
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import POLICIES, SHARE_NODES, pods
from gpushare_core.kube.request import METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListResponse

NAMESPACES = "/api/v1/namespaces"
IN_A_HURRY = NOBODY._replace(grace=0.0)
"""A plugin that hangs would outlive us: there is no time to wait for its end."""


class NamedMeta(Struct):
    name: str


class NamedObject(Struct):
    """Of an object its name alone: the API server sends no more than the metadata."""

    metadata: NamedMeta


@dataclass(frozen=True, slots=True)
class ClusterNames:
    """``environment`` says where the kubeconfig is, where the command line does not."""

    environment: Mapping[str, str]

    @property
    def sources(self) -> Mapping[str, NameSource]:
        """What a value stands for, as ``--help`` calls it -> where its names come from."""
        return {
            "NODE": self._listed(lambda _: SHARE_NODES),
            "CARD": self.cards,
            "N|UUID": self.cards,
            "POD": self._listed(pods),
            "POLICY": self._listed(lambda _: POLICIES),
            "NAMESPACE": self._listed(lambda _: NAMESPACES),
            "CONTEXT": self.contexts,
            "CLUSTER": self.clusters,
        }

    def _listed(self, path: Callable[[str], str]) -> NameSource:
        """``path``: of the list, by the namespace."""

        async def names(typed: TypedWords) -> Iterable[Suggestion]:
            async with self._client(typed) as (client, namespace):
                return await _names(client, path(namespace))

        return names

    async def contexts(self, typed: TypedWords) -> Iterable[Suggestion]:
        return map(Suggestion, self._kubeconfig(typed).contexts)

    async def clusters(self, typed: TypedWords) -> Iterable[Suggestion]:
        return map(Suggestion, self._kubeconfig(typed).clusters)

    async def cards(self, typed: TypedWords) -> Iterable[Suggestion]:
        """Of the nodes in the command line; none where it names no node."""
        found: dict[str, str] = {}
        async with self._client(typed) as (client, _):
            for name in _named_nodes(typed):
                request = ApiRequest(path=f"{SHARE_NODES}/{quote(name, safe='')}")
                node = await client.read(request, shape=ObservedShareNode)
                found.update({str(card.index): card.model for card in node.cards})
        return [Suggestion(number, model) for number, model in found.items()]

    def _kubeconfig(self, typed: TypedWords) -> Kubeconfig:
        return read_kubeconfig(typed_options(typed).kubeconfig, self.environment)

    @asynccontextmanager
    async def _client(self, typed: TypedWords) -> AsyncIterator[tuple[KubeClient, str]]:
        """Yields a client and the namespace that the command line names."""
        login = cluster_login(typed_options(typed), self.environment, terminal=IN_A_HURRY)
        async with KubeClient(login.credentials) as client:
            yield client, login.namespace


async def _names(client: KubeClient, path: str) -> Sequence[Suggestion]:
    request = ApiRequest(path=path, params={"resourceVersion": "0"}, accept=METADATA_LIST)
    response = await client.read(request, shape=ListResponse[NamedObject])
    return [Suggestion(item.metadata.name) for item in response.items or []]


def _named_nodes(typed: TypedWords) -> Iterable[str]:
    named = [action for action in typed.actions if value_name(action) == "NODE"]
    return [name for action in named for name in typed.given.get(action.dest, [])]


def typed_options(typed: TypedWords) -> argparse.Namespace:
    """Returns the options as far as they have been typed, the others as they are by default."""
    options = argparse.Namespace(**typed.parser._defaults)
    for action in typed.actions:
        if action.default is not argparse.SUPPRESS and not hasattr(options, action.dest):
            setattr(options, action.dest, action.default)
        if values := typed.given.get(action.dest):
            setattr(options, action.dest, _value(action, values))
        elif action.dest in typed.given:
            setattr(options, action.dest, action.const)
    return options


def _value(action: argparse.Action, words: Sequence[str]) -> object:
    values = [action.type(word) if callable(action.type) else word for word in words]
    return values if isinstance(action, argparse._AppendAction) else values[-1]
