"""Numbers out of metrics and out of /proc."""

import os
import subprocess
import threading

import pytest
from bench.measuring.figures import NotMeasuredError
from bench.readings.process_use import TICKS, cpu_seconds, exact_cpu, of_process, parsed
from bench.readings.prometheus_text import by_label, mean_between, total

METRICS = """
# HELP gpushare_extender_binds_total Binds that ended.
# TYPE gpushare_extender_binds_total counter
gpushare_extender_binds_total{result="Bound"} 200.0
gpushare_extender_binds_total{result="Refused"} 3.0
gpushare_extender_binds_created{result="Bound"} 1.7e+09
algorithm_seconds_bucket{le="0.001"} 5
algorithm_seconds_sum 0.5
algorithm_seconds_count 100
"""
LATER = METRICS.replace("_sum 0.5", "_sum 2.5").replace("_count 100", "_count 300")


def test_one_metric_by_a_label() -> None:
    assert by_label(METRICS, "gpushare_extender_binds_total", "result") == {"Bound": 200, "Refused": 3}


def test_the_sum_over_all_labels() -> None:
    assert total(METRICS, "gpushare_extender_binds_total") == 203
    assert total(METRICS, "never_counted_total") == 0


def test_the_mean_of_what_was_observed_in_between() -> None:
    assert mean_between(METRICS, LATER, "algorithm_seconds") == pytest.approx(0.01)


@pytest.mark.parametrize("later", [METRICS, "", METRICS.replace("_count 100", "_count 7")])
def test_a_histogram_that_saw_nothing_or_began_anew_has_no_mean(later: str) -> None:
    with pytest.raises(NotMeasuredError, match="algorithm_seconds has observed nothing"):
        mean_between(METRICS, later, "algorithm_seconds")


def test_a_name_with_blanks_and_brackets_does_not_shift_the_times() -> None:
    stat = f"77 (a) b (c) S {' '.join('0' * 10)} {2 * TICKS} {TICKS} 0 0 20"
    assert cpu_seconds(stat) == 3.0
    use = parsed(stat, "Name:\ta\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n")
    assert (use.resident, use.peak) == (1.0, 2.0)


@pytest.mark.parametrize("stat", ["", "77 (a) S 1"])
def test_a_process_that_has_ended_has_no_times(stat: str) -> None:
    with pytest.raises(ValueError, match="has ended"):
        cpu_seconds(stat)


def test_this_process_is_somewhere_in_memory() -> None:
    use = of_process(os.getpid())
    assert 0 < use.resident <= use.peak
    assert use.cpu > 0


def test_the_exact_time_is_the_one_of_proc_and_of_all_threads() -> None:
    before = of_process(os.getpid()).cpu
    worker = threading.Thread(target=sum, args=(range(3_000_000),))
    begun = exact_cpu(os.getpid())
    worker.start()
    worker.join()
    taken = exact_cpu(os.getpid()) - begun
    assert taken > 0
    assert exact_cpu(os.getpid()) == pytest.approx(before + taken, abs=0.2)


def test_a_process_that_has_ended_has_no_exact_time_either() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(OSError, match="Invalid argument"):
        exact_cpu(ended.pid)
