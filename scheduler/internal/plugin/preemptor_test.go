package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"gpushare.io/scheduler/internal/sharenode"
)

// full is a cluster in which nothing is free, before a scheduler with all of its plugins. Nobody is evicted: each attempt
// finds the same.
type full struct {
	framework.Framework
	t     testing.TB
	infos []fwk.NodeInfo
}

// fullNodes are of 8 cards, and each card has two pods; of plain pods as many have all of a node's processors.
func fullNodes(t testing.TB, number int, isPlain bool, preemptor *v1.Pod) *full {
	t.Helper()
	s := newServer(t)
	var shares []*sharenode.Node
	for place := range number {
		name, holders := fmt.Sprintf("gpu-%d", place), []any(nil)
		for tenant := range 16 {
			uid := fmt.Sprintf("%s-%d", name, tenant)
			if isPlain {
				s.create(uid, 0, cpus("4"), func(pod *v1.Pod) { pod.Spec.NodeName = name })
				continue
			}
			s.create(uid, 8, on(name, fmt.Sprintf("GPU-%d", tenant/2), 8))
			holders = append(holders, "uid-"+uid, tenant/2, 8)
		}
		shares = append(shares, node(name, 8, holders...))
	}
	s.create(preemptor.Name, 0, func(created *v1.Pod) { created.Spec = preemptor.Spec })
	return s.start(shares...).full()
}

// full returns the cluster as an attempt sees it.
func (w *world) full() *full {
	w.t.Helper()
	// A benchmark may be kept from renewing the Lease.
	w.factory.core.hold = func(context.Context) (uint64, error) { return 0, nil }
	w.client.PrependReactor("*", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1.Pod{}, nil
	})
	profile := w.sched.Profiles[schedulerName]
	snapshot := profile.SnapshotSharedLister().(*cache.Snapshot)
	if err := w.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		w.t.Fatal(err)
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		w.t.Fatal(err)
	}
	return &full{profile, w.t, infos}
}

func cpus(amount string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		list := v1.ResourceList{"cpu": resource.MustParse(amount)}
		pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: list, Requests: list}
	}
}

func onlyOn(node string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": node} }
}

// attempt is one attempt of a pod: its filters, one node after the other, and who has to go for it. It returns for which
// node the pod is nominated, and why no node fits.
func (f *full) attempt(state fwk.CycleState, pod *v1.Pod) (string, *framework.NodeToStatus) {
	f.t.Helper()
	ctx, statuses := context.Background(), framework.NewDefaultNodeToStatus()
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		f.t.Fatal(status)
	}
	for _, info := range f.infos {
		statuses.Set(info.Node().Name, f.RunFilterPluginsWithNominatedPods(ctx, state, pod, info))
	}
	result, status := f.RunPostFilterPlugins(ctx, state, pod, statuses)
	if !status.IsSuccess() {
		f.t.Fatal(status)
	}
	return result.NominatedNodeName, statuses
}

func TestEvictionsAreTriedOnlyWhereTheyMayHelp(t *testing.T) {
	pod := podOf("high", 16)
	priority(100)(pod)
	onlyOn("gpu-1")(pod)
	f, state := fullNodes(t, 3, false, pod), framework.NewCycleState()
	nominated, statuses := f.attempt(state, pod)
	if nominated != "gpu-1" {
		t.Errorf("it is nominated for %s", nominated)
	}
	if tried := slices.Collect(maps.Keys(stateOf(state).plans.victims)); !slices.Equal(tried, []string{"gpu-1"}) {
		t.Errorf("evictions were tried on %v", tried)
	}
	for name, code := range map[string]fwk.Code{
		"gpu-0": fwk.UnschedulableAndUnresolvable, "gpu-1": fwk.Unschedulable, "gpu-2": fwk.UnschedulableAndUnresolvable,
	} {
		status, words := statuses.Get(name), "insufficient GPU memory in one card: asked 16, largest free 0"
		if status.Code() != code || status.Message() != words || status.Plugin() != Name {
			t.Errorf("%s: %s, %s: %s", name, status.Plugin(), status.Code(), status.Message())
		}
	}
}

// An important pod waits for as long as nobody may be evicted for it, and no longer.
func TestOthersAreEvictedAsSoonAsThatHelps(t *testing.T) {
	equal := node("gpu-1", 1, "uid-low", 0, 8, "uid-equal", 0, 8)
	closed, kept := node("gpu-1", 1, "uid-low", 0, 8), node("gpu-1", 1, "uid-low", 0, 8)
	closed.ClosedReason, kept.Preempts = "node(s) whose GPU cards are not registered with the kubelet yet", false
	for name, before := range map[string]*sharenode.Node{
		"a pod as important has gone": equal, "its node takes pods again": closed, "the policy allows it": kept,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, before)
			w.create("low", 8, on("gpu-1", "GPU-0", 8))
			w.waitSeen("low", true)
			if before == equal {
				w.create("equal", 8, priority(10), on("gpu-1", "GPU-0", 8))
				w.waitSeen("equal", true)
			}
			w.create("important", 16, priority(10))
			w.waitRefused("important")
			time.Sleep(2 * tickTime)
			if w.pod("low") == nil {
				t.Fatal("it was evicted in vain")
			}
			if before == equal {
				w.delete("equal")
			}
			w.report(node("gpu-1", 1, "uid-low", 0, 8))
			w.eventually("it is evicted", func() bool { return w.pod("low") == nil })
			w.report(node("gpu-1", 1))
			w.waitBound("important")
		})
	}
}

// BenchmarkPreemptor is an attempt of an important pod in a full cluster, beside the same with processors instead of cards,
// for kube-scheduler alone.
func BenchmarkPreemptor(b *testing.B) {
	for _, kind := range []struct {
		name    string
		isPlain bool
		change  func(*v1.Pod)
	}{
		{"card/of_one_node", false, onlyOn("gpu-7")},
		{"card/of_any_node", false, func(*v1.Pod) {}},
		{"CPU/of_one_node", true, onlyOn("gpu-7")},
		{"CPU/of_any_node", true, func(*v1.Pod) {}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			pod := podOf("high", 16)
			if kind.isPlain {
				pod = podOf("high", 0)
				cpus("8")(pod)
			}
			kind.change(pod)
			priority(100)(pod)
			f := fullNodes(b, 100, kind.isPlain, pod)
			b.ReportAllocs()
			began := cpuTime(b)
			for b.Loop() {
				f.attempt(framework.NewCycleState(), pod)
			}
			b.ReportMetric(float64((cpuTime(b)-began).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}
