"""The extender in a KubeSchedulerConfiguration."""

from dataclasses import dataclass

from gpushare_core.text.json_object import Json
from gpushare_hostctl.decide.scheduler.edits import AddItem, Edit


@dataclass(frozen=True)
class ClientTls:
    """Paths of kube-scheduler's key with certificate, and of the authorities that it trusts.

    Keys are not in the configuration itself: from ``--v=2`` on kube-scheduler logs all of that.
    """

    client: str
    trusted: str

    def to_mapping(self) -> Json:
        """Returns the field ``tlsConfig``."""
        return {"certFile": self.client, "keyFile": self.client, "caFile": self.trusted}


@dataclass(frozen=True)
class ExtenderEntry:
    """The extender's entry in ``extenders`` of a KubeSchedulerConfiguration.

    ``url`` is the prefix before the verbs, ``http_timeout`` a Go duration such as ``5s``. Without a
    ``prioritize_verb`` the extender is not asked for scores; filter, preempt and bind are always called.
    ``tls`` is needed where ``url`` is an https one. No node has to offer the ``ignored_resources``.
    """

    url: str
    managed_resources: tuple[str, ...]
    http_timeout: str = "5s"
    prioritize_verb: str | None = None
    weight: int = 1
    tls: ClientTls | None = None
    ignored_resources: tuple[str, ...] = ()

    effect = "asks the extender"
    """What kube-scheduler does with it."""

    def __str__(self) -> str:
        return f"the extender {self.url}"

    @property
    def needs_keys(self) -> bool:
        return self.url.startswith("https:")

    def to_mapping(self) -> Json:
        """Returns the entry as kube-scheduler reads it.

        The extender gets names of nodes, is never skipped when it fails, and binds only pods that ask for a
        managed resource. kube-scheduler counts those resources by node, too.
        """
        # kube-scheduler refuses a prioritize verb without a positive weight.
        scores = {"prioritizeVerb": self.prioritize_verb, "weight": self.weight}
        return {
            "urlPrefix": self.url,
            **({"enableHTTPS": True, "tlsConfig": self.tls.to_mapping()} if self.tls else {}),
            "filterVerb": "filter",
            **(scores if self.prioritize_verb else {}),
            "preemptVerb": "preempt",
            "bindVerb": "bind",
            "nodeCacheCapable": True,
            "ignorable": False,
            "httpTimeout": self.http_timeout,
            "managedResources": [
                *({"name": name, "ignoredByScheduler": False} for name in self.managed_resources),
                *({"name": name, "ignoredByScheduler": True} for name in self.ignored_resources),
            ],
        }

    def part(self) -> Json:
        """Returns what a configuration has to say that says nothing else."""
        return {"extenders": [self.to_mapping()]}

    def edits(self, _document: Json) -> list[Edit]:
        """Returns what is added to somebody else's configuration."""
        return [AddItem(path=("extenders",), value=self.to_mapping())]

    @property
    def resources(self) -> tuple[str, ...]:
        """Of which no other extender may decide."""
        return (*self.managed_resources, *self.ignored_resources)

    def inputs(self) -> Json:
        """Returns what decides whether kube-scheduler serves with it."""
        return {"extender": self.to_mapping()}
