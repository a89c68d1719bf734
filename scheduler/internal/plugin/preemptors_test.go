package plugin

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"gpushare.io/scheduler/internal/sharenode"
)

// Cards alone would let the first one evict others. What keeps it away are processors, of which nothing wakes the second one.
func TestTheNextOneIsTriedWhereTheFirstIsKeptAwayBySomethingElse(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-low", 0, 8, "uid-equal", 0, 8))
		w.create("low", 8, on("gpu-1", "GPU-0", 8))
		w.create("equal", 8, priority(10), on("gpu-1", "GPU-0", 8))
		w.waitSeen("equal", true)
		w.create("greedy", 16, priority(10), requestsCPU("1000"))
		w.waitRefused("greedy")
		w.create("important", 16, priority(10))
		w.waitRefused("important")
		time.Sleep(2 * tickTime)
		w.delete("equal")
		w.report(node("gpu-1", 1, "uid-low", 0, 8))
		w.eventually("low is evicted", func() bool { return w.pod("low") == nil })
		w.report(node("gpu-1", 1))
		w.waitBound("important")
	})
}

// The labels of its node are known without an attempt.
func TestWhoMayNotBeOnANodeIsNotTriedToEvictOthersThere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-low", 0, 8, "uid-equal", 0, 8))
		w.create("low", 8, on("gpu-1", "GPU-0", 8))
		w.create("equal", 8, priority(10), on("gpu-1", "GPU-0", 8))
		w.waitSeen("equal", true)
		w.create("elsewhere", 16, priority(10), elsewhereOnly)
		w.rest(func() {
			w.delete("equal")
			w.report(node("gpu-1", 1, "uid-low", 0, 8))
		}, "elsewhere")
	})
}

func TestWhoWasTriedInVainEvictsOnceANodeAdmitsIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-low", 0, 16))
		w.changeNode("gpu-1", inTeam)
		w.create("low", 16, on("gpu-1", "GPU-0", 16))
		w.waitSeen("low", true)
		w.create("a", 16, priority(10))
		w.waitRefused("a")
		w.report(node("gpu-1", 1, "uid-low", 0, 16)) // by cards alone evictions help it
		time.Sleep(2 * tickTime)
		w.tries("a")
		time.Sleep(2 * tickTime)
		w.changeNode("gpu-1", func(node *v1.Node) { node.Spec.Taints = nil })
		w.eventually("low is evicted", func() bool { return w.pod("low") == nil })
	})
}

// The labels admit it all the time, and CPU keeps it away.
func TestWhoWasTriedInVainIsNotTriedAgainAtEachLabelOfItsNode(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-1", "GPU-0", 16))
		w.waitSeen("low", true)
		w.create("a", 16, priority(10), requestsCPU("1000"))
		w.waitRefused("a")
		w.report(node("gpu-1", 1, "uid-low", 0, 16)) // by cards alone evictions help it
		time.Sleep(2 * tickTime)
		w.rest(func() {
			for number := range 4 {
				w.changeNode("gpu-1", func(node *v1.Node) { node.Labels["changes"] = strconv.Itoa(number) })
				time.Sleep(tickTime)
			}
		}, "a")
	})
}

// A pod is evicted on gpu-1 for an important one. Before it has ended the node cannot take that one any more.
func TestWhoWaitsInVainForItsNodeIsPlacedElsewhere(t *testing.T) {
	sick := node("gpu-1", 1, "uid-low", 0, 16)
	sick.Cards[0].IsHealthy = false
	for name, happens := range map[string]func(*world){
		"the node shares no cards any more": func(w *world) { w.factory.core.dropShareNode("gpu-1") },
		"its card is sick":                  func(w *world) { w.report(sick) },
	} {
		t.Run(name, virtually(func(t *testing.T) {
			s := newServer(t)
			s.timing.Retry = patience
			s.create("low", 16, priority(-5), on("gpu-1", "GPU-0", 16))
			s.create("other", 16, on("gpu-2", "GPU-0", 16))
			end := s.linger("low")
			w := s.start(node("gpu-1", 1, "uid-low", 0, 16), node("gpu-2", 1, "uid-other", 0, 16))
			w.lead()
			w.create("important", 16, priority(10))
			w.waitEvicted("low", "important", "gpu-1")
			happens(w)
			end()
			w.waitSeen("low", false)
			if name == "its card is sick" {
				gone := node("gpu-1", 1)
				gone.Cards = append([]sharenode.Card(nil), sick.Cards...)
				gone.Cards[0].Holders, gone.Cards[0].Allocated = nil, 0
				w.report(gone)
			}
			w.eventually("other is evicted", func() bool { return w.pod("other") == nil })
			w.report(node("gpu-2", 1))
			w.waitBound("important")
		}))
	}
}

// A pod is evicted on gpu-1 for an important one, and its kubelet is dead: it does not end.
func TestWhoWaitsForANodeThatIsUnreachableIsPlacedElsewhere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("low", 16, priority(-5), on("gpu-1", "GPU-0", 16))
		s.create("other", 16, on("gpu-2", "GPU-0", 16))
		s.linger("low")
		w := s.start(node("gpu-1", 1, "uid-low", 0, 16), node("gpu-2", 1, "uid-other", 0, 16))
		w.lead()
		w.create("important", 16, priority(10))
		w.eventually("it waits for gpu-1", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-1" })
		w.changeNode("gpu-1", unreachable)
		w.within(patience, "other is evicted", func() bool { return w.pod("other") == nil })
		w.report(node("gpu-2", 1))
		w.waitBound("important")
	})
}

// A pod is evicted on gpu-1 for an important one, and hangs: its card is sick by then, and the other one is an equal's.
func TestWhoWaitsForACardThatIsSickIsPlacedElsewhereBeforeItIsReleased(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("low", 16, priority(-5), on("gpu-1", "GPU-0", 16))
		s.create("equal", 16, priority(10), on("gpu-1", "GPU-1", 16))
		s.create("other", 16, on("gpu-2", "GPU-0", 16))
		s.linger("low")
		w := s.start(node("gpu-1", 2, "uid-low", 0, 16, "uid-equal", 1, 16), node("gpu-2", 1, "uid-other", 0, 16))
		w.lead()
		w.create("important", 16, priority(10))
		w.waitEvicted("low", "important", "gpu-1")
		sick := node("gpu-1", 2, "uid-low", 0, 16, "uid-equal", 1, 16)
		sick.Cards[0].IsHealthy = false
		w.report(sick)
		w.eventually("other is evicted", func() bool { return w.pod("other") == nil })
		w.report(node("gpu-2", 1))
		w.waitBound("important")
	})
}

func unreachable(node *v1.Node) {
	node.Spec.Taints = []v1.Taint{{Key: v1.TaintNodeUnreachable, Effect: v1.TaintEffectNoExecute}}
}

// gpu-1 was kept for it, and is unreachable by then. gpu-2 will fit it as soon as the units of gone are released.
func TestNobodyIsEvictedWhereAnotherNodeThanTheLostOneIsBeingReleased(t *testing.T) {
	for name, happens := range map[string]func(w *world, end func()){
		"the victim hangs": func(*world, func()) {},
		"the victim is gone": func(w *world, end func()) {
			end()
			w.waitSeen("low", false)
			w.report(node("gpu-1", 1, "uid-rest", 0, 8))
		},
	} {
		t.Run(name, virtually(func(t *testing.T) {
			s := newServer(t)
			s.timing.Retry = patience
			s.create("low", 8, priority(-5), on("gpu-1", "GPU-0", 8))
			s.create("rest", 8, priority(10), on("gpu-1", "GPU-0", 8))
			s.create("gone", 8, priority(10), on("gpu-2", "GPU-0", 8))
			s.create("second", 8, priority(5), on("gpu-2", "GPU-0", 8))
			s.create("third", 16, on("gpu-3", "GPU-0", 16))
			end := s.linger("low")
			w := s.start(node("gpu-1", 1, "uid-low", 0, 8, "uid-rest", 0, 8),
				node("gpu-2", 1, "uid-gone", 0, 8, "uid-second", 0, 8), node("gpu-3", 1, "uid-third", 0, 16))
			w.lead()
			w.create("important", 8, priority(10))
			w.waitEvicted("low", "important", "gpu-1")
			w.changeNode("gpu-1", unreachable)
			gone := w.pod("gone")
			w.delete("gone")
			w.waitCached(gone, false)
			happens(w, end)
			w.tries("important")
			w.eventually("it waits for gpu-2", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-2" })
			w.report(node("gpu-2", 1, "uid-second", 0, 8))
			w.waitBound("important")
			for _, name := range []string{"second", "third"} {
				if w.pod(name) == nil {
					t.Errorf("%s was evicted in vain", name)
				}
			}
		}))
	}
}

// Somebody else has nominated it. It evicts nobody, so nothing is gained.
func TestAPodThatMayNotPreemptStaysNominated(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-1", "GPU-0", 16))
		w.waitSeen("low", true)
		w.create("polite", 16, priority(10), func(pod *v1.Pod) {
			never := v1.PreemptNever
			pod.Spec.PreemptionPolicy, pod.Status.NominatedNodeName = &never, "gpu-1"
		})
		w.waitRefused("polite")
		if w.pod("polite").Status.NominatedNodeName == "" {
			t.Error("it is nominated no more")
		}
	})
}

// Each counts where the other one is tried: both would wait for ever.
func TestTwoThatAreNominatedForANodeWithRoomForOneDoNotKeepEachOtherAway(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2, "uid-x", 0, 16, "uid-y", 1, 16))
		lows, important := []string{"x", "y"}, []string{"a", "b"}
		for place, name := range lows {
			w.create(name, 16, on("gpu-1", fmt.Sprint("GPU-", place), 16))
		}
		w.waitSeen("y", true)
		w.mutex.Lock()
		w.lingering = map[string]bool{"x": true, "y": true}
		w.mutex.Unlock()
		for _, name := range important {
			w.create(name, 16, priority(10))
			w.eventually(name+" waits for gpu-1", func() bool { return w.pod(name).Status.NominatedNodeName == "gpu-1" })
		}
		sick := node("gpu-1", 2)
		sick.Cards[1].IsHealthy = false
		w.report(sick)
		w.mutex.Lock()
		w.lingering = nil
		w.mutex.Unlock()
		for _, name := range lows {
			w.delete(name)
		}
		w.eventually("one is bound", func() bool { return w.binding("a") != nil || w.binding("b") != nil })
	})
}

// The API server has accepted that x goes for b, and shows nothing of that yet. Once y is gone, z alone would be the cheaper victim
// for b: on the card that a waits for.
func TestANominatedPodKeepsToTheVictimsThatWereDecided(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("x", 10, priority(5), on("gpu-1", "GPU-0", 10))
		s.create("y", 3, priority(1), on("gpu-1", "GPU-1", 3))
		s.create("z", 7, priority(4), on("gpu-1", "GPU-1", 7))
		end := s.linger("y")
		s.client.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.DeleteAction).GetName() == "x", nil, nil
		})
		w := s.start(node("gpu-1", 2, "uid-x", 0, 10, "uid-y", 1, 3, "uid-z", 1, 7))
		w.lead()
		for _, name := range []string{"a", "b"} {
			w.create(name, map[string]int{"a": 8, "b": 12}[name], priority(10))
			w.eventually(name+" waits for gpu-1", func() bool { return w.pod(name).Status.NominatedNodeName == "gpu-1" })
		}
		end()
		w.report(node("gpu-1", 2, "uid-x", 0, 10, "uid-z", 1, 7))
		w.waitBound("a")
		if w.pod("z") == nil {
			t.Error("z was evicted in vain")
		}
	})
}

// Its units are free as soon as its kubelet has released them.
func TestNobodyIsEvictedInThePlaceOfAPodThatIsGone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 8, "uid-low", 0, 8), node("gpu-2", 1, "uid-elsewhere", 0, 16))
		w.create("elsewhere", 16, priority(-5), on("gpu-2", "GPU-0", 16))
		w.waitSeen("elsewhere", true)
		for _, name := range []string{"gone", "low"} {
			w.create(name, 8, on("gpu-1", "GPU-0", 8))
			w.waitSeen(name, true)
		}
		gone := w.pod("gone")
		w.waitCached(gone, true)
		w.delete("gone")
		w.waitCached(gone, false)
		w.create("important", 8, priority(10))
		if message := w.waitRefused("important"); !strings.HasSuffix(message, "until its node has released the units of pods that are gone") {
			t.Error(message)
		}
		time.Sleep(2 * tickTime)
		w.report(node("gpu-1", 1, "uid-low", 0, 8))
		w.waitBound("important")
		for _, name := range []string{"low", "elsewhere"} {
			if w.pod(name) == nil {
				t.Errorf("%s was evicted in vain", name)
			}
		}
	})
}

// Whoever else is there is as important.
func TestNobodyIsEvictedElsewhereWhileANodeWithoutLessImportantPodsIsBeingReleased(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 16), node("gpu-2", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-2", "GPU-0", 16))
		w.create("gone", 16, on("gpu-1", "GPU-0", 16))
		gone := w.pod("gone")
		w.waitCached(gone, true)
		w.delete("gone")
		w.waitCached(gone, false)
		w.waitSeen("gone", false)
		w.create("important", 16, priority(10))
		w.waitRefused("important")
		w.report(node("gpu-1", 1))
		w.waitBound("important")
		if w.pod("low") == nil {
			t.Error("it was evicted in vain")
		}
	})
}

// stuck ends late on GPU-0. Were the pod that waits counted there, any other could take the card of gone before it is tried again.
func TestTheCardOfAPodThatIsGoneIsKeptForWhoWaitsForIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("stuck", 16, on("gpu-1", "GPU-0", 16))
		s.create("gone", 16, on("gpu-1", "GPU-1", 16))
		s.linger("stuck")
		w := s.start(node("gpu-1", 2, "uid-stuck", 0, 16, "uid-gone", 1, 16))
		w.lead()
		gone := w.pod("gone")
		w.delete("stuck")
		w.delete("gone")
		w.waitCached(gone, false)
		w.create("important", 16, priority(10))
		w.eventually("it waits for gpu-1", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-1" })
		profile := w.sched.Profiles[schedulerName]
		nominated := profile.NominatedPodsForNode("gpu-1")
		w.attempts.mutex.Lock() // it is not tried
		defer w.attempts.mutex.Unlock()
		w.report(node("gpu-1", 2, "uid-stuck", 0, 16))
		info, err := profile.SnapshotSharedLister().NodeInfos().Get("gpu-1")
		if err != nil {
			t.Fatal(err)
		}
		b := &bench{&Plugin{core: w.factory.core, handle: profile}, t, nil, framework.NewCycleState()}
		other := podOf("other", 16)
		b.begin(other)
		for _, one := range nominated {
			b.AddPod(context.Background(), b.state, other, one, info)
		}
		if len(nominated) != 1 || b.Filter(context.Background(), b.state, other, info).IsSuccess() {
			t.Errorf("another one may have its card beside %d that are nominated", len(nominated))
		}
	})
}

// whileEvicting has something happen before the API server answers anybody who evicts pods for a preemptor: then the pods
// are gone.
func (w *world) whileEvicting(preemptor string, happens func()) {
	var hasBegun atomic.Bool
	ended := make(chan struct{})
	w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.PatchAction).GetName()
		if name == preemptor {
			return false, nil, nil
		}
		w.client.Unlock() // others use it meanwhile
		defer w.client.Lock()
		if hasBegun.CompareAndSwap(false, true) {
			happens()
			close(ended)
		}
		<-ended
		return true, nil, apierrors.NewNotFound(pods.GroupResource(), name)
	})
}

// The scheduler tries no pod while it evicts others for it. Here both are gone by themselves before that ends, and nothing happens
// after it.
func TestWhoWasWokenWhileOthersWereEvictedForItIsTriedAfterThat(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 8, "uid-y", 0, 8))
		for _, name := range []string{"x", "y"} {
			w.create(name, 8, on("gpu-1", "GPU-0", 8))
			w.waitSeen(name, true)
		}
		w.whileEvicting("important", func() {
			time.Sleep(tickTime / 2) // its attempt has ended
			w.delete("x")
			w.delete("y")
			w.report(node("gpu-1", 1))
			time.Sleep(3 * tickTime) // it was woken
		})
		w.create("important", 16, priority(10))
		w.waitBound("important")
	})
}

// Processors are freed here, and no event of them reaches the waker.
func TestWhoIsNominatedAndNotTriedAfterItsVictimsAreGoneIsWokenAfterAWhile(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1), node("gpu-2", 1, "uid-other", 0, 16))
		for _, name := range []string{"x", "y"} {
			w.create(name, 0, requestsCPU("30"), func(pod *v1.Pod) { pod.Spec.NodeName = "gpu-1" })
			w.waitSeen(name, true)
		}
		w.whileEvicting("important", func() {
			w.eventually("its attempt has ended", func() bool { return len(w.factory.core.handle.NominatedPodsForNode("gpu-1")) == 1 })
			w.delete("x")
			w.delete("y")
			time.Sleep(tickTime) // the scheduler has heard of it
		})
		w.create("important", 4, priority(10), requestsCPU("60"))
		w.within(patience, "it is bound", func() bool { return w.binding("important") != nil })
	})
}

// Its annotations leave no room for ours once it waits for the card of low.
func TestNoCardIsKeptForAPodThatNoNodeCanTakeAnyMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("low", 16, on("gpu-1", "GPU-0", 16))
		end := s.linger("low")
		w := s.start(node("gpu-1", 1, "uid-low", 0, 16))
		w.lead()
		w.create("crowded", 16, priority(10))
		w.eventually("it waits for gpu-1", func() bool { return w.pod("crowded").Status.NominatedNodeName == "gpu-1" })
		w.change("crowded", func(pod *v1.Pod) { pod.Annotations = map[string]string{"big": strings.Repeat("x", 256<<10)} })
		end()
		w.report(node("gpu-1", 1))
		w.eventually("it is refused", func() bool { return strings.Contains(w.message("crowded"), "annotations") })
		w.create("other", 16, priority(10))
		w.waitBound("other")
	})
}

// kube-scheduler makes its plugins before the queue that has the nominated pods.
func TestAReportBeforeTheSchedulerIsCompleteWakesNobody(t *testing.T) {
	incomplete, err := frameworkruntime.NewFramework(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, node("gpu-1", 1))
	b.core.handle = incomplete
	waker := newWaker(b.waiting, func([]*v1.Pod) { t.Error("nobody waits") }, nil)
	waker.note("gpu-1")
	waker.look(b.core)
	waker.tick(b.core)
}
