package metrics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	kube "k8s.io/component-base/metrics"

	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/ledger"
)

// observed are Metrics in a registry of their own, with a clock that stands still.
type observed struct {
	*Metrics
	t        *testing.T
	now      time.Time
	read     Readings
	registry kube.KubeRegistry
}

func observe(t *testing.T) *observed {
	t.Helper()
	o := &observed{t: t, now: time.Unix(1_000_000, 0), registry: kube.NewKubeRegistry()}
	o.Metrics = New(func() time.Time { return o.now }, func() Readings { return o.read })
	o.registry.CustomMustRegister(o.Metrics)
	return o
}

func (o *observed) pass(duration time.Duration) { o.now = o.now.Add(duration) }

// series returns every value by its name, with labels in braces.
func (o *observed) series() map[string]float64 {
	o.t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		o.t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.Metric {
			labels := make([]string, 0, len(metric.Label))
			for _, label := range metric.Label {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			name := fmt.Sprintf("%s{%s}", strings.TrimPrefix(family.GetName(), "gpushare_"), strings.Join(labels, ","))
			found[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	return found
}

func (o *observed) want(want map[string]float64) {
	o.t.Helper()
	found := o.series()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, is := found[name]; !is || value != want[name] {
			o.t.Errorf("%s: %v (there: %v), not %v", name, value, is, want[name])
		}
	}
}

func TestAllBeginsWithNothing(t *testing.T) {
	o := observe(t)
	for _, reason := range ledger.Kinds {
		o.want(map[string]float64{
			fmt.Sprintf("extender_refusals_total{reason=%s}", reason):        0,
			fmt.Sprintf("extender_waiting_pods{reason=%s}", reason):          0,
			fmt.Sprintf("extender_longest_wait_seconds{reason=%s}", reason):  0,
			"extender_binds_total{result=Bound}":                             0,
			"extender_binds_total{result=Refused}":                           0,
			"extender_binds_total{result=NoLease}":                           0,
			"extender_reservations{state=abandoned}":                         0,
			"build_info{program=gpushare-scheduler,version=" + Version + "}": 1,
		})
	}
}

func TestAPodWaitsSinceItsFirstRefusal(t *testing.T) {
	o := observe(t)
	o.Refused("a", []ledger.Kind{ledger.NoRoom, ledger.NotShared})
	o.pass(5 * time.Minute)
	o.Refused("a", []ledger.Kind{ledger.NoRoom, ledger.NotShared})
	o.Refused("b", []ledger.Kind{ledger.NoRoom, ledger.NodeClosed})
	o.Refused("c", []ledger.Kind{ledger.NotShared})
	o.pass(10 * time.Second)
	o.want(map[string]float64{
		"extender_refusals_total{reason=NoRoom}":           3,
		"extender_refusals_total{reason=NotShared}":        3,
		"extender_waiting_pods{reason=NoRoom}":             2,
		"extender_waiting_pods{reason=NodeClosed}":         1,
		"extender_waiting_pods{reason=NotShared}":          1,
		"extender_longest_wait_seconds{reason=NoRoom}":     310,
		"extender_longest_wait_seconds{reason=NodeClosed}": 10,
	})
}

func TestAPodWaitsNoMore(t *testing.T) {
	for name, end := range map[string]func(o *observed, uid types.UID){
		"it has a node":               func(o *observed, uid types.UID) { o.Fits(uid) },
		"it is bound, or gone":        func(o *observed, uid types.UID) { o.Shown(uid) },
		"the cards are no reason":     func(o *observed, uid types.UID) { o.Refused(uid, nil) },
		"it is not tried any more":    func(o *observed, _ types.UID) { o.pass(goneTime) },
		"it waits for something else": func(o *observed, uid types.UID) { o.Refused(uid, []ledger.Kind{ledger.NodeClosed}) },
	} {
		t.Run(name, func(t *testing.T) {
			o := observe(t)
			o.Refused("a", []ledger.Kind{ledger.NoRoom})
			o.want(map[string]float64{"extender_waiting_pods{reason=NoRoom}": 1})
			end(o, "a")
			o.want(map[string]float64{
				"extender_waiting_pods{reason=NoRoom}": 0, "extender_longest_wait_seconds{reason=NoRoom}": 0,
			})
		})
	}
}

func TestBindsAreCountedByTheirEnd(t *testing.T) {
	o := observe(t)
	first, second, third := o.Bind("a"), o.Bind("b"), o.Bind("c")
	o.want(map[string]float64{"extender_binds_under_way{}": 3})
	first(nil)
	second(errors.New("forbidden"))
	third(fmt.Errorf("the pod is not bound: %w", bindlease.NotHeldError{Cause: errors.New("an extender binds pods")}))
	o.want(map[string]float64{
		"extender_binds_under_way{}": 0, "extender_binds_total{result=Bound}": 1, "extender_binds_total{result=Refused}": 1,
		"extender_binds_total{result=NoLease}": 1,
	})
}

func TestAReservationThatNoWatchConfirmsIsAbandoned(t *testing.T) {
	o := observe(t)
	o.read.Reserved = []types.UID{"under-way", "bound", "long-bound"}
	o.Bind("long-bound")(nil)
	o.pass(shownTime)
	o.Bind("bound")(nil)
	o.Bind("under-way")
	o.want(map[string]float64{
		"extender_reservations{state=under_way}": 1, "extender_reservations{state=confirmed}": 1,
		"extender_reservations{state=abandoned}": 1,
	})
	o.Shown("long-bound")
	o.read.Reserved = []types.UID{"under-way", "bound"}
	o.want(map[string]float64{"extender_reservations{state=abandoned}": 0})
	if len(o.boundAt) != 1 {
		t.Errorf("remembered: %v", o.boundAt)
	}
}

func TestWhatIsReadWhenSomebodyAsks(t *testing.T) {
	o := observe(t)
	o.read = Readings{
		Nodes: map[string]int{"gpushare.io/memory": 3}, LargestFree: map[string]int64{"gpushare.io/memory": 12},
		Watches: map[string]Watch{"gpusharenodes": {true, 90 * time.Second}},
	}
	o.want(map[string]float64{
		"extender_nodes{resource=gpushare.io/memory}":        3,
		"extender_largest_free{resource=gpushare.io/memory}": 12,
		"watch_listed{collection=gpusharenodes}":             1,
		"watch_silence_seconds{collection=gpusharenodes}":    90,
	})
}
