"""What the demo shows of the books is of one moment."""

import json
from pathlib import Path

from demo.console import Console
from demo.stage import Stage

from gpushare_localcluster.cluster import LocalCluster


class LaggingCluster(LocalCluster):
    """Whose policy hears of what its nodes have when it is asked for the second time."""

    of_policy = (12, 24)
    asked = 0

    def kubectl(self, *arguments: str, **_: object) -> str:
        if "-o" not in arguments:
            return f"ALLOCATED\n{self.of_policy[self.asked - 1]}"
        allocated = 24
        if "gpusharepolicies" in arguments:
            allocated = self.of_policy[self.asked]
            self.asked += 1
        return json.dumps({"items": [{"status": {"units": {"allocated": allocated}}}]})


def test_policy_and_nodes_are_shown_when_they_say_the_same(tmp_path: Path) -> None:
    cluster = LaggingCluster(tmp_path)
    Stage(cluster, Console(lambda: 0.0)).show_books()
    assert cluster.asked == 2
