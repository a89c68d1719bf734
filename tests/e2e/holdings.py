"""What pods have, to be compared before and after something that must not touch them."""

import json
from typing import Any

from tests.e2e.books import read_books
from tests.e2e.observe import PODS, get

from gpushare_localcluster.cluster import LocalCluster


def holdings(cluster: LocalCluster, namespace: str) -> dict[str, Any]:
    """Returns by pod, of one container each: its node and cards, by annotation and by environment, and which
    start of its container runs."""
    books, found = read_books(cluster, namespace), {}
    for item in get(cluster, PODS.format(namespace=namespace))["items"]:
        name, (container,) = item["metadata"]["name"], item["status"]["containerStatuses"]
        annotation = json.loads(item["metadata"]["annotations"]["gpushare.io/allocation"])
        started = (item["metadata"]["uid"], container["containerID"], container["restartCount"])
        shares = [books.environment[key] for key in books.environment if key.pod == name]
        found[name] = (item["spec"]["nodeName"], annotation["containers"], started, shares)
    return found
