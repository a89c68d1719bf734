package waiting

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/sharenode"
)

// occupied has a pod of a priority have all units of the node, where it may be evicted.
func (w *world) occupied(priority int32) {
	holder := pod("holder", "16", priority)
	holder.Spec.NodeName = "gpu-1"
	holder.Annotations = map[string]string{allocation.Annotation: `{"node":"gpu-1","uid":"holder",` +
		`"at":"2026-11-21T10:00:00Z","unit":"1Gi","containers":{"main":{"GPU-0":16}}}`}
	w.nodes.SetPod(holder)
	card := sharenode.Card{
		UUID: "GPU-0", Units: 16, Allocated: 16, IsHealthy: true,
		Holders: []sharenode.Holder{{UID: "holder", Units: 16, Least: 16}},
	}
	w.nodes.SetShareNode(&sharenode.Node{
		Name: "gpu-1", Cards: []sharenode.Card{card}, Resources: []cards.Resource{memory}, Preempts: true,
	})
	w.pods.Changed("gpu-1", w.nodes)
}

// newRefused has pods of priority 10 wait for the node, whose units a pod has that is as important.
func newRefused(names ...string) *world {
	w := newWorld()
	w.occupied(10)
	for _, name := range names {
		w.try(pod(name, "16", 10))
	}
	return w
}

// Nominated implements Scheduler.
func (w *world) Nominated(node string) []*v1.Pod {
	var pods []*v1.Pod
	for name, of := range w.nominated {
		if of == node {
			pods = append(pods, pod(name, "16", 0))
		}
	}
	return pods
}

// NominatedNode implements Scheduler.
func (w *world) NominatedNode(pod *v1.Pod) string { return w.nominated[pod.Name] }

// IsPaused implements Scheduler.
func (w *world) IsPaused(string) bool { return w.isPaused }

// Node implements Scheduler.
func (w *world) Node(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "a"}}, Spec: v1.NodeSpec{Taints: w.taints},
	}
}

// preemptors begins a round.
func (w *world) preemptors() []string {
	w.pods.Open()
	var names []string
	for _, pod := range w.pods.Preemptors(w.nodes, w) {
		names = append(names, pod.Name)
	}
	return names
}

func TestTheMostImportantIsWokenOnceEvictionsHelp(t *testing.T) {
	w, never, policy := newWorld(), pod("never", "16", 30), v1.PreemptNever
	never.Spec.PreemptionPolicy = &policy
	w.nominated["nominated"] = "gpu-2"
	w.occupied(10)
	for _, one := range []*v1.Pod{never, pod("nominated", "16", 30), pod("less", "16", 5), pod("a", "16", 8), pod("b", "16", 10)} {
		w.try(one)
	}
	w.occupied(10)
	expect(t, "nobody is less important", w.preemptors())
	w.occupied(7)
	expect(t, "the most important", w.preemptors(), "b")
	expect(t, "nothing has changed", w.preemptors())
	w.pods.Remove("b") // it is bound
	w.occupied(7)
	expect(t, "evictions help the next one as well", w.preemptors(), "a")
	w.pods.Refused("less", cluster.NamedNodes([]string{"gpu-2"}), w.nodes)
	w.pods.Remove("a")
	w.occupied(4)
	expect(t, "it waits for another node", w.preemptors())
}

// helpless are nodes of which nobody may ask whether evictions help.
type helpless struct {
	*cluster.Cluster
	t *testing.T
}

func (h helpless) HelpsFrom(node string, _ *cluster.Asked, _ int32) (from int32, helps bool) {
	h.t.Errorf("somebody asks whether evictions help on %s", node)
	return 0, false
}

// A round asks that of a limited number of nodes only, and other pods wait for the answer.
func TestNobodyAsksWhetherEvictionsHelpPodsThatWaitForNoNode(t *testing.T) {
	w := newRefused("a")
	w.tryForNothing(pod("a", "16", 10))
	w.occupied(5)
	w.pods.Preemptors(helpless{w.nodes, t}, w)
}

// The pod is nominated for the node, and waits for a volume that is gone.
func TestANominatedPodThatWaitsForNoNodeKeepsNobodyFromEvictingOnItsNode(t *testing.T) {
	w := newRefused("a", "b")
	w.tryForNothing(pod("b", "16", 10))
	w.nominated["b"] = "gpu-1"
	w.occupied(5)
	expect(t, "evictions help a", w.preemptors(), "a")
}

func TestWhomEvictionsDoNotHelpIsWokenOnce(t *testing.T) {
	w := newRefused("a", "b")
	w.occupied(5)
	expect(t, "the first", w.preemptors(), "a")
	w.try(pod("a", "16", 10)) // in vain: another plugin refuses the node
	expect(t, "the next one may be let pass", w.preemptors(), "b")
	w.try(pod("b", "16", 10)) // in vain as well
	for range 3 {
		w.occupied(5)
		expect(t, "evictions helped before", w.preemptors())
	}
	w.occupied(10)
	expect(t, "nobody is less important", w.preemptors())
	w.occupied(5)
	expect(t, "they help again: the one whose last attempt is the longest ago", w.preemptors(), "a")
}

// Whoever was tried in between was refused by what was so then.
func TestEvictionsBeginToHelpAnew(t *testing.T) {
	for name, between := range map[string]func(w *world, is bool){
		"the node was closed": func(w *world, is bool) {
			closed := *w.nodes.ShareNode("gpu-1")
			closed.ClosedReason = map[bool]string{true: "node(s) that are closed"}[is]
			w.nodes.SetShareNode(&closed)
			w.pods.Changed("gpu-1", w.nodes)
		},
		"the node was paused": func(w *world, is bool) {
			w.isPaused = is
			w.pods.Changed("gpu-1", w.nodes)
		},
		"nobody waited": func(w *world, is bool) {
			w.nominated["a"] = map[bool]string{true: "gpu-2"}[is]
			w.occupied(map[bool]int32{true: 10, false: 5}[is])
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRefused("a")
			w.occupied(5)
			expect(t, "evictions help", w.preemptors(), "a")
			w.try(pod("a", "16", 10)) // another plugin refuses the node
			between(w, true)
			if name != "the node was closed" { // for less than a round
				expect(t, "evictions do not help", w.preemptors())
			}
			w.try(pod("a", "16", 10))
			between(w, false)
			expect(t, "they do again", w.preemptors(), "a")
		})
	}
}

func TestEvictionsBeginToHelpAnewOnceAPodAsImportantHasComeAndGone(t *testing.T) {
	w := newRefused("a", "b")
	w.occupied(5)
	expect(t, "the first", w.preemptors(), "a")
	w.try(pod("a", "16", 10)) // in vain: another plugin refuses the node
	w.pods.Taken("gpu-1", 9)
	w.try(pod("b", "16", 10))
	w.occupied(5)
	expect(t, "one who is less important has come", w.preemptors())
	w.pods.Taken("gpu-1", 10)
	w.try(pod("a", "16", 10)) // nobody may be evicted
	w.occupied(5)
	expect(t, "it has gone", w.preemptors(), "b")
	w.try(pod("b", "16", 10))
	expect(t, "a was tried before that, too", w.preemptors(), "a")
	w.try(pod("a", "16", 10))
	w.occupied(5)
	expect(t, "both were tried", w.preemptors())
}

func TestWhoMayNotBeOnTheNodeIsNotWoken(t *testing.T) {
	w := newRefused()
	w.try(elsewhere("elsewhere", 10))
	w.try(pod("a", "16", 10))
	w.occupied(5)
	expect(t, "it may be on other nodes alone", w.preemptors(), "a")
	w.try(pod("a", "16", 10))
	expect(t, "still", w.preemptors())
}

// elsewhere returns a pod that may be on nodes of another pool alone.
func elsewhere(name string, priority int32) *v1.Pod {
	one := pod(name, "16", priority)
	one.Spec.NodeSelector = map[string]string{"pool": "b"}
	return one
}

func TestNobodyElseIsWokenWhileAPodIsNominatedForTheNode(t *testing.T) {
	w := newRefused("a", "b", "c")
	w.occupied(5)
	expect(t, "the first", w.preemptors(), "a")
	w.try(pod("a", "16", 10))
	w.nominated["a"] = "gpu-1" // others are evicted for it
	w.occupied(5)
	expect(t, "the node is kept for a", w.preemptors())
	w.try(pod("b", "16", 10)) // the scheduler tries it by itself, in vain while a is nominated
	delete(w.nominated, "a")
	w.pods.Remove("a") // its owner deletes it
	w.pods.Anew("gpu-1")
	w.pods.Changed("gpu-1", w.nodes)
	expect(t, "a is gone", w.preemptors(), "c")
	w.try(pod("c", "16", 10))
	expect(t, "b was tried in vain meanwhile", w.preemptors(), "b")
}

// Something keeps the scheduler from trying a, such as a claim that is gone.
func TestWhoIsNotTriedThoughItWasWokenDoesNotKeepOthersAwayForEver(t *testing.T) {
	w := newRefused("a", "b")
	w.occupied(5)
	expect(t, "the first", w.preemptors(), "a")
	for range turnRounds - 1 {
		expect(t, "its turn", w.preemptors())
	}
	woken := w.preemptors()
	for range 2 * turnRounds {
		woken = append(woken, w.preemptors()...)
	}
	if !slices.Contains(woken, "b") {
		t.Errorf("woken then: %v", woken)
	}
}

func TestNothingIsKeptOfNodesThatAreGone(t *testing.T) {
	w := newRefused("a")
	w.occupied(5)
	w.preemptors()
	w.try(pod("a", "16", 10))
	w.nodes.DropShareNode("gpu-1")
	w.pods.Changed("gpu-1", w.nodes)
	w.preemptors()
	for _, group := range w.pods.groups {
		if kept := len(group.open) + len(group.full) + len(group.helped); kept > 0 {
			t.Errorf("%d kept", kept)
		}
	}
}

func TestALessImportantOneIsWokenWhenEvictionsBeginToHelpIt(t *testing.T) {
	w := newWorld()
	w.occupied(7)
	w.try(pod("a", "16", 10))
	w.try(pod("b", "16", 6))
	w.occupied(7)
	expect(t, "the more important one", w.preemptors(), "a")
	w.try(pod("a", "16", 10)) // in vain
	w.occupied(5)
	expect(t, "the less important one", w.preemptors(), "b")
}

func TestAChangeDuringAnAttemptIsLookedAtAfterIt(t *testing.T) {
	w, a := newWorld(), pod("a", "16", 10)
	w.occupied(10)
	w.begin(a)
	w.occupied(5)
	expect(t, "it is being tried", w.preemptors())
	w.pods.Refused(a.UID, cluster.NamedNodes([]string{"gpu-1"}), w.nodes)
	expect(t, "by what was before the change", w.preemptors(), "a")
}

func TestNobodyElseIsWokenUntilTheWokenOneIsTried(t *testing.T) {
	w := newRefused("a", "b")
	w.occupied(5)
	expect(t, "the first", w.preemptors(), "a")
	w.occupied(10)
	w.occupied(5)
	expect(t, "a is not tried yet", w.preemptors())
	w.pods.Remove("a")
	expect(t, "then the second", w.preemptors(), "b")
}

func TestNobodyIsWokenForAPausedNode(t *testing.T) {
	w := newRefused("a")
	w.isPaused = true
	w.occupied(5)
	expect(t, "it takes no pods", w.preemptors())
	w.isPaused = false
	w.pods.Changed("gpu-1", w.nodes)
	expect(t, "it takes pods again", w.preemptors(), "a")
}

func TestWhatAnAttemptSawWakesNobody(t *testing.T) {
	w := newRefused("a")
	w.occupied(5)
	w.try(pod("a", "16", 10))
	expect(t, "the attempt came after the change", w.preemptors())
}
