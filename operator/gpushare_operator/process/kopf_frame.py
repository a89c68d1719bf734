"""kopf as the frame of the process: it calls what starts and what stops, and obeys signals.

It follows no kind: at a watch that is refused or has expired it would end the process (``watches`` follows).
"""

import kopf

from gpushare_core.kube.backoff import Backoff


def configure(settings: kopf.OperatorSettings) -> None:
    """Keeps kopf from writing, giving up and watching anything."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    # Otherwise kopf wants to watch all CRDs and namespaces.
    settings.scanning.disabled = True
    # It gives up and exits when its delays run out.
    settings.networking.error_backoffs = Backoff(first=0.5, most=30.0)
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    settings.process.ultimate_exiting_timeout = 20.0
