package waiting

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
	// isPaused says that the node takes no pods for a while.
	isPaused bool
	// nominated are the nodes for which pods are nominated, by pod.
	nominated map[string]string
	// taints are those of every node.
	taints []v1.Taint
	// isExplained says of a pod that the API server shows why it waits; nil: of all.
	isExplained func(*v1.Pod) bool
}

func newWorld() *world {
	w := &world{nodes: cluster.New(time.Now, func(string) {}), pods: New(), nominated: map[string]string{}}
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

// try has the scheduler try a pod, and returns whether the node fits it; the pod is not bound.
func (w *world) try(pod *v1.Pod) bool {
	asked, attempt := w.begin(pod)
	var refused []string
	if !w.nodes.Known("gpu-1").Fits(asked) {
		refused = []string{"gpu-1"}
	}
	w.pods.Refused(pod.UID, w.nodes.NodeSet(attempt, refused), w.nodes)
	return len(refused) == 0
}

// tryForNothing has the scheduler try a pod that waits for something else than nodes.
func (w *world) tryForNothing(pod *v1.Pod) {
	w.begin(pod)
	w.pods.Refused(pod.UID, cluster.NamedNodes(nil), w.nodes)
}

// begin has the scheduler begin to try a pod. It returns what the pod asks for, and the number of the attempt.
func (w *world) begin(pod *v1.Pod) (*cluster.Asked, uint64) {
	asked, attempt := cluster.Ask(pod, w.nodes.Resources()), w.nodes.Attempt()
	w.pods.Add(pod, asked, attempt)
	return asked, attempt
}

func (w *world) change(free int64) []string {
	w.report(free)
	w.pods.Changed("gpu-1", w.nodes)
	return w.next()
}

// next begins a round.
func (w *world) next() []string {
	w.pods.Open()
	var names []string
	for _, pod := range w.pods.Next("gpu-1", w.nodes, w) {
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
	expect(t, "too little", w.change(7))
	w.try(pod("b", "8", 0))
	expect(t, "enough for one who found too little", w.change(16), "b")
	w.report(7)
	w.try(pod("a", "8", 0))
	expect(t, "enough for both", w.change(16), "a", "b")
}

func TestAPodThatWaitsForSomeNodesAloneIsLeftByOthers(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, name := range []string{"any", "gpu-1", "gpu-2"} {
		w.try(pod(name, "8", 0))
		if name != "any" {
			w.pods.Refused(types.UID(name), cluster.NamedNodes([]string{name}), w.nodes)
		}
	}
	expect(t, "two wait for it", w.change(16), "any", "gpu-1")
	expect(t, "the third does not", w.next())
}

func TestWhatChangesDuringAnAttemptCountsAtItsEnd(t *testing.T) {
	w := newWorld()
	w.report(0)
	a := pod("a", "8", 0)
	attempt := w.nodes.Attempt()
	w.pods.Add(a, cluster.Ask(a, w.nodes.Resources()), attempt)
	expect(t, "it is not known yet who refuses it", w.change(16))
	refused := w.nodes.NodeSet(attempt, []string{"gpu-1"})
	if changed := w.pods.Refused("a", refused, w.nodes); !slices.Equal(changed, []string{"gpu-1"}) {
		t.Errorf("changed: %v", changed)
	}
	expect(t, "the end of the attempt", w.next(), "a")
	if changed := w.pods.Refused("nobody", refused, w.nodes); len(changed) > 0 {
		t.Errorf("changed: %v", changed)
	}
}

func TestANodeThatRefusesInSpiteOfItsRoomWakesNobodyElse(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.try(pod(name, "8", 0))
	}
	expect(t, "two have room", w.change(16), "a", "b")
	for _, name := range []string{"a", "b"} { // as while another one is nominated for the node
		attempt := w.nodes.Attempt()
		w.pods.Add(pod(name, "8", 0), cluster.Ask(pod(name, "8", 0), w.nodes.Resources()), attempt)
		by := w.nodes.NodeSet(attempt, []string{"gpu-1"})
		if changed := w.pods.Refused(types.UID(name), by, w.nodes); len(changed) > 0 {
			t.Errorf("changed: %v", changed)
		}
	}
	expect(t, "it refuses", w.next())
	expect(t, "it has changed", w.change(16), "a", "b")
}

func TestAPodWhoseAttemptIsUnderWayKeepsItsPlace(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("less", "6", 0))
	important := pod("important", "16", 10)
	attempt := w.nodes.Attempt()
	w.pods.Add(important, cluster.Ask(important, w.nodes.Resources()), attempt)
	expect(t, "it may take the room", w.change(16))
	w.pods.Refused("important", w.nodes.NodeSet(attempt, []string{"gpu-1"}), w.nodes)
	expect(t, "it was refused by what was before", w.next(), "important")
	w.pods.Remove("important")
	expect(t, "it is bound elsewhere", w.next(), "less")
}

func TestAPodWhoseAttemptFailedByAnErrorIsLeftToTheScheduler(t *testing.T) {
	w := newWorld()
	w.report(0)
	a := pod("a", "8", 0)
	w.pods.Add(a, cluster.Ask(a, w.nodes.Resources()), w.nodes.Attempt())
	w.nodes.Attempt() // of another one
	expect(t, "room", w.change(16))
	if open := w.pods.Open(); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
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
	if w.pods.Len() != 1 || len(w.pods.groups) != 1 {
		t.Errorf("%d wait", w.pods.Len())
	}
	expect(t, "4 units", w.change(4), "a")
}

// on has a node with one card of 16 units, all of them free.
func (w *world) on(name string) {
	card := sharenode.Card{UUID: "GPU-0", Units: 16, IsHealthy: true}
	w.nodes.SetShareNode(&sharenode.Node{
		Name: name, Cards: []sharenode.Card{card}, Resources: []cards.Resource{memory},
	})
	w.pods.Changed(name, w.nodes)
}

func TestNodesThatAreFreeAtTheSameTimeWakeOneEach(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, name := range []string{"a", "b", "c"} {
		w.try(pod(name, "16", 0))
	}
	woken := map[string]string{}
	for _, node := range []string{"gpu-2", "gpu-3", "gpu-4"} {
		w.on(node)
		for _, pod := range w.pods.Next(node, w.nodes, w) {
			woken[pod.Name] = node
		}
	}
	if len(woken) != 3 {
		t.Errorf("woken: %v", woken)
	}
}

func TestAPodThatIsWokenKeepsItsPlaceUntilItIsTried(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("a", "16", 0))
	w.try(pod("b", "16", 0))
	expect(t, "the first", w.change(16), "a")
	w.pods.Changed("gpu-1", w.nodes)
	if again := w.pods.Next("gpu-1", w.nodes, w); len(again) > 0 {
		t.Errorf("woken although a may take the card: %v", again[0].Name)
	}
	w.try(pod("a", "16", 0)) // another plugin refuses it
	expect(t, "the second", w.next(), "b")
}

func TestRoomInOnePoolWakesNobodyOfAnother(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, name := range []string{"a", "b", "c"} {
		w.try(elsewhere(name, 10))
	}
	w.try(pod("d", "16", 0))
	expect(t, "the card is free", w.change(16), "d")
	w.try(elsewhere("e", 10))
	w.pods.Remove("d")
	expect(t, "again", w.change(16))
	if open := w.pods.Open(); len(open) > 0 {
		t.Errorf("open: %v", open)
	}
}

func TestOneThatIsNominatedIsLeftOnceTheNodeHasNoRoomForIt(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("nominated", "16", 0))
	w.try(pod("small", "4", -1))
	w.nominated["nominated"] = "gpu-1"
	expect(t, "room for it", w.change(16), "nominated")
	w.try(pod("nominated", "16", 0)) // another plugin refuses it
	w.report(8)                      // others have taken units, which is no news for the pods that wait
	expect(t, "room for another one", w.next(), "small")
}

func TestWhoDoesNotTolerateTheNodesTaintIsNotWoken(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, name := range []string{"a", "b", "c"} {
		w.try(pod(name, "16", 10))
	}
	w.try(tolerant("d"))
	w.taints = []v1.Taint{{Key: "soft", Effect: v1.TaintEffectPreferNoSchedule}, {Key: "team", Effect: v1.TaintEffectNoSchedule}}
	expect(t, "the card is free", w.change(16), "d")
	w.pods.Remove("d")
	expect(t, "again", w.change(16))
	w.taints = w.taints[:1]
	expect(t, "everybody may be there", w.change(16), "a")
}

// tolerant returns a pod that may be on nodes with the taint team.
func tolerant(name string) *v1.Pod {
	one := pod(name, "16", 0)
	one.Spec.Tolerations = []v1.Toleration{{Key: "team", Operator: v1.TolerationOpExists}}
	return one
}

// While one is nominated for a node the scheduler refuses the others there.
func TestOneThatIsNominatedForTheNodeComesFirst(t *testing.T) {
	w := newWorld()
	w.report(0)
	for _, name := range []string{"older", "nominated"} {
		w.try(pod(name, "16", 0))
	}
	w.nominated["nominated"] = "gpu-1"
	expect(t, "it was evicted for", w.change(16), "nominated")
}

// Nothing says that an attempt has failed by an error. The scheduler tries the pod again, perhaps in vain.
// The scheduler does not try it while it evicts others for it.
func TestOneThatIsNominatedIsWokenInEachRoundUntilItIsTried(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("nominated", "16", 0))
	w.nominated["nominated"] = "gpu-1"
	expect(t, "room for it", w.change(16), "nominated")
	for range 2 {
		expect(t, "it was not tried", w.next(), "nominated")
	}
	w.try(pod("nominated", "16", 0))
	expect(t, "it was tried", w.next())
}

func TestAPodWhoseAttemptFailsByAnErrorKeepsNobodyAway(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.try(pod("a", "16", 0))
	w.begin(pod("fails", "16", 10))
	expect(t, "it may be under way", w.change(16))
	w.rounds(attemptRounds + 1)
	expect(t, "it is not", w.next(), "a")
}

func TestAPodThatWaitedForSomethingElseKeepsItsPlaceAmongTheOthers(t *testing.T) {
	w := newWorld()
	w.report(0)
	w.tryForNothing(pod("first", "16", 0))
	for _, name := range []string{"second", "first"} {
		w.try(pod(name, "16", 0))
	}
	expect(t, "it has waited longest", w.change(16), "first")
}

func TestAnAttemptEndsOnce(t *testing.T) {
	w := newRefused()
	w.tryForNothing(pod("a", "16", 0))
	if changed := w.pods.Refused("a", cluster.NamedNodes([]string{"gpu-1"}), w.nodes); len(changed) > 0 {
		t.Errorf("changed: %v", changed)
	}
	expect(t, "it waits for no node", w.change(16))
}

func TestNodesThatChangeConcernNobodyWhoWaitsForSomethingElse(t *testing.T) {
	w := newWorld()
	w.tryForNothing(elsewhere("a", 0))
	w.pods.Updated("a", w.Node("gpu-1"), &v1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"pool": "b"}}})
	expect(t, "a node has room", w.change(16))
}
