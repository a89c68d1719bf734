"""What a pod asks for of everything that a node has: CPU, memory, other extended resources.

Source: ``PodRequests`` of ``k8s.io/component-helpers/resource``.
"""

from collections import Counter
from fractions import Fraction

from gpushare_cli.decide.scheduling.written_pod import WrittenContainer, WrittenSpec
from gpushare_core.placement.quantity import read_amount

Amounts = Counter[str]
"""Resource -> amount, in the unit of its name: CPUs, bytes."""


def pod_amounts(spec: WrittenSpec) -> dict[str, Fraction]:
    staying: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    for container in spec.init_containers or ():
        asked = _requests(container)
        peak |= staying + asked
        if container.is_sidecar:
            staying += asked
    main: Counter[str] = Counter()
    for container in spec.containers or ():
        main += _requests(container)
    total = peak | staying + main
    if spec.resources:
        whole = {**(spec.resources.limits or {}), **(spec.resources.requests or {})}
        total.update({name: _amount(amount) - total[name] for name, amount in whole.items()})
    overhead = Counter({name: _amount(amount) for name, amount in (spec.overhead or {}).items()})
    return {name: Fraction(amount) / 1000 for name, amount in (total + overhead).items()}


def _requests(container: WrittenContainer) -> Counter[str]:
    """A limit stands for a request that is not there."""
    written = {**container.limits, **container.requests}
    return Counter({name: _amount(amount) for name, amount in written.items()})


def _amount(amount: str | int | float) -> int:
    """Returns thousandths, rounded up: of CPUs the smallest there is."""
    thousandths = read_amount(amount) * 1000
    return -(-thousandths.numerator // thousandths.denominator)
