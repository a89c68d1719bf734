package waiting

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

var memory = cards.Resource{Name: "gpushare.io/memory", Class: cards.Memory}

// world is a node gpu-1 with one card of 16 units, and the pods that wait.
type world struct {
	nodes *cluster.Cluster
	pods  *Pods
}

func newWorld() *world {
	w := &world{cluster.New(time.Now, func(string) {}), New()}
	w.report(16)
	return w
}

// report says that others have all units but some.
func (w *world) report(free int64) {
	card := sharenode.Card{UUID: "GPU-0", Units: 16, Allocated: 16 - free, IsHealthy: true}
	w.nodes.SetShareNode(&sharenode.Node{
		Name: "gpu-1", Cards: []sharenode.Card{card}, Resources: []cards.Resource{memory},
	})
}

func pod(name, units string, priority int32) *v1.Pod {
	limits := v1.ResourceList{v1.ResourceName(memory.Name): resource.MustParse(units)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{Priority: &priority, Containers: []v1.Container{{
			Name: "main", Resources: v1.ResourceRequirements{Limits: limits},
		}}},
	}
}

// try has the scheduler try a pod, and returns whether the node fits it.
func (w *world) try(pod *v1.Pod) bool {
	asked := cluster.Ask(pod, w.nodes.Resources())
	w.pods.Add(pod, asked, w.nodes.Attempt())
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}})
	info.Generation = 1
	return w.nodes.Room(info).Fits(asked)
}

func (w *world) change(free int64) []string {
	w.report(free)
	w.pods.Changed("gpu-1", w.nodes)
	return w.next()
}

func (w *world) next() []string {
	var names []string
	for _, pod := range w.pods.Next("gpu-1", w.nodes) {
		names = append(names, pod.Name)
	}
	return names
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: woke %v, want %v", what, got, want)
	}
}

func TestAPodIsWokenWhenItFits(t *testing.T) {
	w := newWorld()
	w.report(4)
	if w.try(pod("a", "8", 0)) {
		t.Fatal("it fits")
	}
	expect(t, "too little", w.change(7))
	expect(t, "enough", w.change(8), "a")
	expect(t, "again", w.next())
	w.pods.Remove("a")
	expect(t, "once it is bound", w.change(16))
}

func TestAPodThatWaitsForSomethingElseIsLeft(t *testing.T) {
	w := newWorld()
	if !w.try(pod("a", "8", 0)) {
		t.Fatal("it does not fit")
	}
	expect(t, "as before", w.change(16))
	expect(t, "less, but enough", w.change(9))
	expect(t, "too little", w.change(7))
	expect(t, "enough again", w.change(16), "a")
}

func TestThoseWhoWaitedBeforeAnotherWasTriedAreWoken(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("a", "8", 0))
	w.report(16) // and before anybody looks
	w.try(pod("b", "8", 0))
	w.pods.Changed("gpu-1", w.nodes)
	expect(t, "the first one", w.next(), "a")
}

func TestAsManyAreWokenAsFitTogether(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, one := range []*v1.Pod{pod("old", "8", 0), pod("new", "8", 0), pod("high", "8", 5), pod("large", "16", 0)} {
		w.try(one)
	}
	expect(t, "first", w.change(16), "high", "old")
	expect(t, "while there is still room", w.next(), "new")
	expect(t, "then", w.next(), "large")
	expect(t, "then", w.next())
	if open := w.pods.Open(); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
}

func TestTakenUnitsAreNoRoom(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("a", "8", 0))
	w.try(pod("b", "8", 0))
	expect(t, "one fits", w.change(8), "a")
	holder := &ledger.Holder{UID: "a", Node: "gpu-1", Cards: []cards.Share{{Card: "GPU-0", Units: 8}}}
	if err := w.nodes.Reserve(holder); err != nil {
		t.Fatal(err)
	}
	w.pods.Remove("a")
	expect(t, "no room is left", w.next())
	w.nodes.Release("a")
	w.pods.Changed("gpu-1", w.nodes)
	expect(t, "the units are back", w.next(), "b")
}

func TestAPodThatAsksForSomethingElseNow(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("a", "8", 0))
	w.try(pod("a", "4", 0))
	if w.pods.Len() != 1 || w.pods.Asked("a").Parts[0].Total != 4 {
		t.Errorf("%d wait", w.pods.Len())
	}
	expect(t, "4 units", w.change(4), "a")
}
