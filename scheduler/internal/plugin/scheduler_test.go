package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/dialects"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/unit"
)

// node returns a GPUShareNode with cards of 16 units, none of them given out but what holders have: UID, card, units.
func node(name string, number int, holders ...any) *sharenode.Node {
	units, _ := unit.ParseNode("1Gi")
	shared := &sharenode.Node{
		Name: name, Unit: "1Gi", Units: units, Dialect: dialects.Named("gpushare.io"), Preempts: true,
		Resources: []cards.Resource{{Name: memory, Class: cards.Memory}},
	}
	for index := range number {
		shared.Cards = append(shared.Cards, sharenode.Card{
			UUID: fmt.Sprintf("GPU-%d", index), Index: int64(index), Units: 16, IsHealthy: true,
			NUMANode: -1, LinkGroup: -1,
		})
	}
	for place := 0; place < len(holders); place += 3 {
		card, amount := &shared.Cards[holders[place+1].(int)], int64(holders[place+2].(int))
		card.Allocated += amount
		card.Holders = append(card.Holders, sharenode.Holder{UID: holders[place].(string), Units: amount, Least: amount})
	}
	return shared
}

// cardUnits returns the units of each pod's cards, as "node/card", by the Bindings.
func (w *world) cardUnits(names ...string) map[string]int64 {
	w.t.Helper()
	units := map[string]int64{}
	for _, name := range names {
		binding := w.binding(name)
		given, err := allocation.Read(binding.Annotations[allocation.Annotation], string(binding.UID))
		if err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		if given.Node != binding.Target.Name {
			w.t.Errorf("%s is bound to %s with cards of %s", name, binding.Target.Name, given.Node)
		}
		for _, share := range given.Held() {
			units[given.Node+"/"+share.Card] += share.Units
		}
	}
	return units
}

func numbered(name string, number int) []string {
	names := make([]string, number)
	for place := range names {
		names[place] = fmt.Sprintf("%s-%d", name, place)
	}
	return names
}

func TestABurstFillsTheCardsExactly(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2), node("gpu-2", 2))
		names := numbered("half", 8)
		for _, name := range names {
			w.create(name, 8)
		}
		w.waitBound(names...)
		units := w.cardUnits(names...)
		for card, amount := range units {
			if amount != 16 {
				t.Errorf("%s has %d units", card, amount)
			}
		}
		if len(units) != 4 {
			t.Errorf("cards: %v", units)
		}
		w.create("late", 1)
		want := "0/2 nodes are available: 2 insufficient GPU memory in one card: asked 1, largest free 0."
		if message := w.waitRefused("late"); !strings.HasPrefix(message, want) {
			t.Errorf("message: %s", message)
		}
	})
}

func TestNodeAndCardAreInOneBinding(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		w.create("a", 4)
		w.waitBound("a")
		binding := w.binding("a")
		text := binding.Annotations[allocation.Annotation]
		if !strings.HasPrefix(text, `{"node":"gpu-1","uid":"uid-a","at":"`) || !strings.HasSuffix(text,
			`"unit":"1Gi","containers":{"main":{"GPU-0":4}},"resource":"memory","cards":{"GPU-0":4},"cpu":"100m","memory":"0"}`) {
			t.Errorf("annotation: %s", text)
		}
		if binding.UID != "uid-a" || binding.ResourceVersion == "" || binding.Target.Name != "gpu-1" {
			t.Errorf("Binding: %+v", binding)
		}
	})
}

func TestOrdinaryPodsAreLeftToTheOthers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		w.create("plain", 0)
		w.waitBound("plain")
		if binding := w.binding("plain"); len(binding.Annotations) > 0 || binding.ResourceVersion != "" {
			t.Errorf("Binding: %+v", binding.ObjectMeta)
		}
		if w.factory.core.waiting.Len() > 0 {
			t.Error("it waits for a card")
		}
	})
}

func TestWordsAreThoseOfTheExtender(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "x", 0, 10), &sharenode.Node{Name: "cpu-1"})
		w.create("large", 20)
		message := w.waitRefused("large")
		for _, want := range []string{
			"0/2 nodes are available: ", "1 node(s) that share no GPU cards",
			"1 insufficient GPU memory in one card: asked 20, largest free 6, biggest card 16",
			"2 Preemption is not helpful for scheduling",
		} {
			if !strings.Contains(message, want) {
				t.Errorf("message: %s\nwant: %s", message, want)
			}
		}
		w.create("more", 65537)
		if message := w.waitRefused("more"); !strings.Contains(message, "the pod asks for 65537 units, but a pod may have at most") {
			t.Errorf("message: %s", message)
		}
	})
}

func TestNodesThatDifferInAmountsHaveOneSentence(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "x", 0, 10), node("gpu-2", 1, "y", 0, 12), node("gpu-3", 1, "z", 0, 14))
		w.create("a", 8)
		want := "0/3 nodes are available: 3 insufficient GPU memory in one card: asked 8, largest free 6."
		if message := w.waitRefused("a"); !strings.HasPrefix(message, want) {
			t.Errorf("message: %s", message)
		}
	})
}

func TestAPodGoesToTheBestNode(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1), node("gpu-2", 1, "x", 0, 8), node("gpu-3", 1))
		w.create("half", 8)
		w.waitBound("half")
		if name := w.binding("half").Target.Name; name != "gpu-2" {
			t.Errorf("bound to %s", name)
		}
	})
}

func TestWaitingPodsRest(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1), node("gpu-2", 1))
		waiting := numbered("waits", 20)
		w.create("a", 8)
		w.create("b", 8)
		w.waitBound("a", "b")
		for _, name := range waiting {
			w.create(name, 12, priority(-1))
		}
		if bound := w.binding("a").Target.Name; bound != w.binding("b").Target.Name {
			t.Fatal("a and b are on two nodes")
		}
		others := numbered("other", 2)
		for _, name := range others {
			w.create(name, 6)
		}
		w.waitBound(others...)
		rest := func() []string {
			return slices.DeleteFunc(slices.Clone(waiting), func(name string) bool { return w.binding(name) != nil })
		}
		for _, name := range rest() {
			w.waitRefused(name)
		}
		before := map[string]int{}
		for _, name := range rest() {
			before[name] = w.attempts.of(name)
		}
		plain := numbered("plain", 20)
		for _, name := range plain {
			w.create(name, 0)
		}
		w.waitBound(plain...)
		for _, name := range plain {
			w.delete(name)
		}
		w.delete("a") // nobody has reported it, and 8 units are too few
		time.Sleep(2 * tickTime)
		for name, number := range before {
			if now := w.attempts.of(name); now != number {
				t.Errorf("%s had %d attempts, and %d before", name, now, number)
			}
		}
	})
}

func TestTheOneWhoseCardIsFreeIsWoken(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "x", 0, 16))
		waiting := numbered("waits", 10)
		for _, name := range waiting {
			w.create(name, 16)
		}
		for _, name := range waiting {
			w.waitRefused(name)
		}
		began := time.Now()
		w.report(node("gpu-1", 1))
		w.eventually("one is bound", func() bool { return len(w.boundOf(waiting)) == 1 })
		if took := time.Since(began); took > tickTime/10 {
			t.Errorf("it took %s", took)
		}
		time.Sleep(2 * tickTime)
		attempts := 0
		for _, name := range waiting {
			attempts += w.attempts.of(name)
		}
		if bound := w.boundOf(waiting); len(bound) != 1 || attempts != len(waiting)+1 {
			t.Errorf("bound: %v, attempts: %d", bound, attempts)
		}
	})
}

func TestPreemptionFreesOneCardWithTheFewestPods(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2, "uid-x", 0, 8, "uid-y", 0, 8, "uid-big", 1, 16))
		w.create("x", 8, on("gpu-1", "GPU-0", 8))
		w.create("y", 8, on("gpu-1", "GPU-0", 8))
		w.create("big", 16, on("gpu-1", "GPU-1", 16), func(pod *v1.Pod) {
			began := metav1.NewTime(time.Unix(1000, 0)) // the scheduler alone would spare it, and evict the two others
			pod.Status.StartTime = &began
		})
		w.create("plain", 0)
		w.waitBound("plain")
		w.create("important", 16, priority(10))
		w.eventually("big is gone", func() bool { return w.pod("big") == nil })
		// Until its node has released the units it is tried in vain, and nobody else has to go.
		w.eventually("it is nominated", func() bool { return w.pod("important").Status.NominatedNodeName != "" })
		before := w.attempts.of("important")
		activate := func() bool {
			waiting := map[string]*v1.Pod{"important": w.pod("important")}
			w.sched.SchedulingQueue.Activate(klog.Background(), waiting)
			return w.attempts.of("important") > before+1
		}
		w.eventually("it was tried again", activate)
		time.Sleep(tickTime)
		w.report(node("gpu-1", 2, "uid-x", 0, 8, "uid-y", 0, 8))
		w.waitBound("important")
		for _, name := range []string{"x", "y", "plain"} {
			if w.pod(name) == nil {
				t.Errorf("%s is gone", name)
			}
		}
		if units := w.cardUnits("important"); units["gpu-1/GPU-1"] != 16 {
			t.Errorf("cards: %v", units)
		}
	})
}

func TestNobodyIsEvictedWhereThePolicySaysSo(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		closed := node("gpu-1", 1, "uid-x", 0, 16)
		closed.Preempts = false
		w := newWorld(t, closed)
		w.create("x", 16, on("gpu-1", "GPU-0", 16))
		w.create("important", 16, priority(10))
		w.waitRefused("important")
		time.Sleep(tickTime)
		if w.pod("x") == nil {
			t.Error("x is gone")
		}
	})
}

func TestOthersDoNotTakeWhatIsFreedForANominatedPod(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 10))
		w.create("x", 10, on("gpu-1", "GPU-0", 10))
		w.create("important", 16, priority(10))
		w.eventually("x is gone", func() bool { return w.pod("x") == nil })
		w.create("small", 6) // 6 are free all the time
		w.waitRefused("small")
		w.report(node("gpu-1", 1))
		w.waitBound("important")
		if w.binding("small") != nil {
			t.Error("small is bound")
		}
		w.delete("important")
		w.waitBound("small")
	})
}

// Both cards have room for small, and one of them is to be free for the pod that waits.
func TestOthersGetAnotherCardThanTheOneThatIsFreedForANominatedPod(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2, "uid-x", 0, 8, "uid-y", 1, 8))
		w.create("x", 8, on("gpu-1", "GPU-0", 8))
		w.create("y", 8, priority(20), on("gpu-1", "GPU-1", 8))
		w.waitSeen("y", true)
		end := w.linger("x")
		w.create("important", 16, priority(10))
		w.eventually("important waits for gpu-1", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-1" })
		w.create("small", 8, priority(10))
		w.waitBound("small")
		if units := w.cardUnits("small"); units["gpu-1/GPU-1"] != 8 {
			t.Errorf("small has %v", units)
		}
		w.report(node("gpu-1", 2, "uid-y", 1, 8, "uid-small", 1, 8))
		end()
		w.waitBound("important")
	})
}

func TestWhatWasHeldForAPodThatIsBoundElsewhereIsFree(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 10), node("gpu-2", 1, "uid-y", 0, 16))
		w.create("x", 10, on("gpu-1", "GPU-0", 10))
		w.create("y", 16, priority(50), on("gpu-2", "GPU-0", 16))
		w.create("important", 16, priority(10))
		w.eventually("x is gone", func() bool { return w.pod("x") == nil })
		w.create("small", 6)
		w.waitRefused("small")
		w.report(node("gpu-2", 1)) // the kubelet has lost y
		w.delete("y")
		w.waitBound("important", "small")
		if name := w.binding("important").Target.Name; name != "gpu-2" {
			t.Errorf("important is bound to %s", name)
		}
	})
}

func TestManyNodesThatAreFreeAtTheSameTimeAreFilledAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		var full, free []*sharenode.Node
		for place := range 10 {
			name := fmt.Sprintf("gpu-%d", place)
			full, free = append(full, node(name, 1, "uid-x-"+name, 0, 16)), append(free, node(name, 1))
		}
		w := newWorld(t, full...)
		waiting := numbered("waits", 10)
		for _, name := range waiting {
			w.create(name, 16)
		}
		for _, name := range waiting {
			w.waitRefused(name)
		}
		time.Sleep(2 * tickTime)
		began := time.Now()
		for _, one := range free {
			w.report(one)
		}
		w.waitBound(waiting...)
		if took := time.Since(began); took > 3*tickTime {
			t.Errorf("it took %s", took)
		}
	})
}

// Both wait for the same card. Who is less important looks for another one once it is taken.
func TestAPodThatLosesTheNodeItWaitsForEvictsElsewhere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16), node("gpu-2", 1, "uid-y", 0, 16))
		w.create("x", 16, on("gpu-1", "GPU-0", 16))
		w.create("y", 16, priority(5), on("gpu-2", "GPU-0", 16))
		w.waitSeen("y", true)
		end := w.linger("x")
		w.create("first", 16, priority(10))
		w.eventually("first is nominated", func() bool { return w.pod("first").Status.NominatedNodeName == "gpu-1" })
		w.create("second", 16, priority(20))
		w.eventually("second is nominated", func() bool { return w.pod("second").Status.NominatedNodeName == "gpu-1" })
		w.report(node("gpu-1", 1))
		end()
		w.waitBound("second")
		w.eventually("y is gone", func() bool { return w.pod("y") == nil })
		w.report(node("gpu-2", 1))
		w.waitBound("first")
	})
}

func TestUnitsOfABindingThatFailsAreGivenBack(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New("no"))
		w.onBind = func(binding *v1.Binding) error {
			if binding.Name == "a" {
				return forbidden
			}
			return nil
		}
		w.create("a", 16)
		w.eventually("a was tried", func() bool { return w.attempts.of("a") > 0 })
		w.create("b", 16)
		w.waitBound("b")
	})
}

// newPaused starts a scheduler with a node whose kubelet has rejected a pod.
func newPaused(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, node("gpu-1", 1))
	w.create("a", 4)
	w.waitBound("a")
	w.factory.core.pauses.Bound(w.pod("a"), "gpu-1") // the bind itself may not have come so far
	w.change("a", func(pod *v1.Pod) {
		pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "OutOfgpushare.io/memory"
	})
	w.factory.core.podHandler().OnDelete(w.pod("a")) // as the watch of pods that have not ended
	w.eventually("gpu-1 is paused", func() bool { return w.factory.core.pauses.Reason("gpu-1") != "" })
	return w
}

func TestANodeWhoseKubeletRejectsPodsIsPaused(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newPaused(t)
		w.create("b", 4)
		want := "node takes no pods for 5 s: its kubelet rejected one (OutOfgpushare.io/memory)"
		if message := w.waitRefused("b"); !strings.Contains(message, want) {
			t.Errorf("message: %s", message)
		}
		w.waitBound("b")
	})
}

func TestANodeWhosePluginReportsIsPausedNoMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newPaused(t)
		w.report(node("gpu-1", 1))
		if reason := w.factory.core.pauses.Reason("gpu-1"); reason != "" {
			t.Errorf("it is paused: %s", reason)
		}
	})
}

func TestOurPluginComesFirst(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		enabled := w.sched.Profiles[schedulerName].ListPlugins()
		for point, set := range map[string]config.PluginSet{
			"Filter": enabled.Filter, "PostFilter": enabled.PostFilter, "Bind": enabled.Bind,
		} {
			if len(set.Enabled) < 2 || set.Enabled[0].Name != Name {
				t.Errorf("%s: %v", point, set.Enabled)
			}
		}
		for point, set := range map[string]config.PluginSet{
			"Score": enabled.Score, "Reserve": enabled.Reserve, "PreScore": enabled.PreScore,
		} {
			if !slices.ContainsFunc(set.Enabled, func(plugin config.Plugin) bool { return plugin.Name == Name }) {
				t.Errorf("%s: %v", point, set.Enabled)
			}
		}
	})
}

func TestTheConfigurationNamesTheDialectsResources(t *testing.T) {
	read := readConfig(t)
	var ignored []string
	for _, one := range read.Profiles[0].PluginConfig {
		if args, is := one.Args.(*config.NodeResourcesFitArgs); is {
			ignored = args.IgnoredResources
		}
	}
	want := []string{"tuya.com/vcuda-core"}
	for _, resource := range dialects.Resources(func(string) bool { return false }) {
		want = append(want, resource.Name)
	}
	slices.Sort(want)
	slices.Sort(ignored)
	if !slices.Equal(ignored, want) {
		t.Errorf("ignored %v, want %v", ignored, want)
	}
}
