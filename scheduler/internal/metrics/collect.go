package metrics

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kube "k8s.io/component-base/metrics"

	"gpushare.io/scheduler/internal/ledger"
)

// program is how this one is called among those of gpushare.
const program = "gpushare-scheduler"

// The states of a reservation.
const (
	underWay  = "under_way"
	confirmed = "confirmed"
	abandoned = "abandoned"
)

var (
	build    = described("gpushare_build_info", "Always 1; the labels name program and version.", "program", "version")
	refusals = described("gpushare_extender_refusals_total",
		"Scheduling attempts that found no node, counted once for each reason.", "reason")
	binds       = described("gpushare_extender_binds_total", "Binds that ended.", "result")
	bindsNow    = described("gpushare_extender_binds_under_way", "Binds whose outcome is not known yet.")
	nodes       = described("gpushare_extender_nodes", "Nodes that take pods that ask for the resource.", "resource")
	largestFree = described("gpushare_extender_largest_free", "Largest request that fits some node now.", "resource")
	waitingPods = described("gpushare_extender_waiting_pods", "Pods that fitted no node at their last try.", "reason")
	longestWait = described("gpushare_extender_longest_wait_seconds",
		"Longest time that a waiting pod has waited so far.", "reason")
	reservations = described("gpushare_extender_reservations",
		"Reservations for pods that no watch shows as bound yet.", "state")
	listed = described("gpushare_watch_listed",
		"1 once the collection has been listed completely, else 0.", "collection")
	silence = described("gpushare_watch_silence_seconds", "Time since the last sign of the API server.", "collection")
)

var all = []*kube.Desc{
	build, refusals, binds, bindsNow, nodes, largestFree, waitingPods, longestWait, reservations, listed, silence,
}

func described(name, help string, labels ...string) *kube.Desc {
	return kube.NewDesc(name, help, labels, nil, kube.ALPHA, "")
}

// DescribeWithStability implements kube.StableCollector.
func (m *Metrics) DescribeWithStability(out chan<- *kube.Desc) {
	for _, one := range all {
		out <- one
	}
}

// CollectWithStability implements kube.StableCollector.
func (m *Metrics) CollectWithStability(out chan<- kube.Metric) {
	read := m.read()
	gauge(out, build, 1, program, Version)
	for name, number := range read.Nodes {
		gauge(out, nodes, float64(number), name)
		gauge(out, largestFree, float64(read.LargestFree[name]), name)
	}
	for collection, watch := range read.Watches {
		gauge(out, listed, number(watch.IsListed), collection)
		gauge(out, silence, watch.Silence.Seconds(), collection)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.collectCounts(out)
	m.collectWaits(out)
	m.collectReservations(out, read.Reserved)
}

func gauge(out chan<- kube.Metric, desc *kube.Desc, value float64, labels ...string) {
	out <- kube.NewLazyConstMetric(desc, kube.GaugeValue, value, labels...)
}

func number(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// collectCounts begins with 0: Prometheus sees no increase in a series that appears with 1.
func (m *Metrics) collectCounts(out chan<- kube.Metric) {
	for _, reason := range ledger.Kinds {
		out <- kube.NewLazyConstMetric(refusals, kube.CounterValue, float64(m.refusals[reason]), string(reason))
	}
	for _, result := range []string{bound, refused, noLease} {
		out <- kube.NewLazyConstMetric(binds, kube.CounterValue, float64(m.binds[result]), result)
	}
	gauge(out, bindsNow, float64(m.underWay))
}

// collectWaits counts a pod with two reasons for both.
func (m *Metrics) collectWaits(out chan<- kube.Metric) {
	now, pods, longest := m.now(), map[ledger.Kind]int{}, map[ledger.Kind]time.Duration{}
	maps.DeleteFunc(m.waiting, func(_ types.UID, one wait) bool { return now.Sub(one.tried) >= goneTime })
	for _, one := range m.waiting {
		for _, reason := range one.reasons {
			pods[reason]++
			longest[reason] = max(longest[reason], now.Sub(one.since))
		}
	}
	for _, reason := range ledger.Kinds {
		gauge(out, waitingPods, float64(pods[reason]), string(reason))
		gauge(out, longestWait, longest[reason].Seconds(), string(reason))
	}
}

func (m *Metrics) collectReservations(out chan<- kube.Metric, reserved []types.UID) {
	now, states := m.now(), map[string]int{}
	for _, uid := range reserved {
		since, isBound := m.boundAt[uid]
		switch {
		case !isBound:
			states[underWay]++
		case now.Sub(since) < shownTime:
			states[confirmed]++
		default:
			states[abandoned]++
		}
	}
	for _, state := range []string{underWay, confirmed, abandoned} {
		gauge(out, reservations, float64(states[state]), state)
	}
}
