package plugin

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	inVirtualTime(t, func(t *testing.T) {
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
	})
}

// An important pod waits for as long as nobody may be evicted for it, and no longer.
func TestOthersAreEvictedAsSoonAsThatHelps(t *testing.T) {
	equal := node("gpu-1", 1, "uid-low", 0, 8, "uid-equal", 0, 8)
	closed, kept := node("gpu-1", 1, "uid-low", 0, 8), node("gpu-1", 1, "uid-low", 0, 8)
	closed.ClosedReason, kept.Preempts = "node(s) whose GPU cards are not registered with the kubelet yet", false
	for name, before := range map[string]*sharenode.Node{
		"a pod as important has gone": equal, "its node takes pods again": closed, "the policy allows it": kept,
	} {
		t.Run(name, virtually(func(t *testing.T) {
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
		}))
	}
}

// The claim has a device of gpu-1. DynamicResources deallocates it once it has refused gpu-0 because of that.
func TestAClaimStaysAllocatedWhereItsNodeIsFull(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		pod := podOf("high", 16)
		priority(100)(pod)
		name := "claim"
		pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: name, ResourceClaimName: &name}}
		f := fullNodes(t, 2, false, pod)
		f.claim(name, "gpu-1")
		if nominated, _ := f.attempt(framework.NewCycleState(), pod); nominated != "gpu-1" {
			t.Errorf("it is nominated for %s", nominated)
		}
		now, err := f.ClientSet().ResourceV1().ResourceClaims("default").Get(context.Background(), name, metav1.GetOptions{})
		if err != nil || now.Status.Allocation == nil {
			t.Errorf("the claim is deallocated: %v", err)
		}
	})
}

// claim has the scheduler know a claim with a device of a node, which nobody uses.
func (f *full) claim(name, node string) {
	f.t.Helper()
	onNode := v1.NodeSelectorRequirement{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{node}}
	claim := &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
			NodeSelector: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
				{MatchFields: []v1.NodeSelectorRequirement{onNode}},
			}},
		}},
	}
	claims := f.ClientSet().ResourceV1().ResourceClaims("default")
	if _, err := claims.Create(context.Background(), claim, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		_, err := f.SharedDRAManager().ResourceClaims().Get("default", name)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			f.t.Fatal(err)
		}
	}
}

// The first pod waits for the card of big. It does not count as one that takes what is freed for the second one.
func TestNobodyElseGoesForANominatedPod(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		names, holders := []string{"big", "c", "d", "e", "f"}, []any(nil)
		s := newServer(t)
		for place, name := range names {
			card, units := (place+1)/2, 8
			if name == "big" {
				units = 16
			}
			holders = append(holders, "uid-"+name, card, units)
			s.create(name, units, on("gpu-1", fmt.Sprintf("GPU-%d", card), units), func(pod *v1.Pod) {
				began := metav1.Unix(int64(1000+place), 0)
				pod.Status.StartTime = &began
			})
		}
		s.linger("big")
		s.timing.Retry = patience
		w := s.start(node("gpu-1", 3, holders...))
		w.lead()
		w.create("first", 16, priority(10))
		w.eventually("big is ending", func() bool {
			seen, err := w.sched.Cache.GetPod(w.pod("big"))
			return err == nil && seen.DeletionTimestamp != nil
		})
		w.create("second", 8, priority(10))
		w.eventually("f is gone", func() bool { return w.pod("f") == nil })
		w.eventually("second is nominated", func() bool { return w.pod("second").Status.NominatedNodeName == "gpu-1" })
		for _, name := range names[:4] {
			if w.pod(name) == nil {
				t.Errorf("%s is gone", name)
			}
		}
	})
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

// Cards alone would let it evict others on each node. What keeps it away are the processors of hog.
func TestWhatEvictionsInVainWouldFreeIsNotRemembered(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		var shares []*sharenode.Node
		for number := range 3 {
			name := fmt.Sprintf("gpu-%d", number)
			s.create("low-"+name, 16, on(name, "GPU-0", 16))
			s.create("hog-"+name, 0, cpus("63.9"), priority(1000), func(pod *v1.Pod) { pod.Spec.NodeName = name })
			shares = append(shares, node(name, 1, "uid-low-"+name, 0, 16))
		}
		w := s.start(shares...)
		w.lead()
		remembered := func() (number int) {
			if byNode, is := w.factory.core.places.Load(types.UID("uid-high")); is {
				byNode.(*sync.Map).Range(func(any, any) bool { number++; return true })
			}
			return number
		}
		s.create("high", 16, priority(10), requestsCPU("1"))
		w.waitRefused("high")
		if number := remembered(); number < len(shares) {
			t.Fatalf("it may have been tried on %d nodes", number)
		}
		s.create("next", 16)
		w.waitRefused("next")
		if number := remembered(); number > 0 {
			t.Errorf("cards of %d nodes are remembered", number)
		}
	})
}
