package plugin

import (
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpushare.io/scheduler/internal/ledger"
)

func requestsCPU(amount string) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(amount) }
}

// loses has a pod gone, and its units not released yet.
func (w *world) loses(name string) {
	w.t.Helper()
	gone := w.pod(name)
	w.waitCached(gone, true)
	w.delete(name)
	w.waitCached(gone, false)
	w.waitSeen(name, false)
}

// tries has a pod tried again: it tolerates another taint.
func (w *world) tries(name string) {
	w.t.Helper()
	tried := w.attempts.of(name)
	w.change(name, func(pod *v1.Pod) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, v1.Toleration{Key: "another", Operator: v1.TolerationOpExists})
	})
	w.eventually(name+" is tried again", func() bool { return w.attempts.of(name) > tried })
}

// newEvicted starts a scheduler with a pod that waits for all of a card on gpu-1, of which low has 10 units until end is called, and
// for half of the node's processors. From now on other would be a cheaper victim than low was.
func newEvicted(t *testing.T) (w *world, end func()) {
	t.Helper()
	s := newServer(t)
	s.timing.Retry = patience
	s.create("low", 10, priority(-5), on("gpu-1", "GPU-0", 10))
	s.create("gone", 16, priority(10), on("gpu-2", "GPU-0", 16))
	end = s.linger("low")
	w = s.start(node("gpu-1", 1, "uid-low", 0, 10), node("gpu-2", 1, "uid-gone", 0, 16), node("gpu-3", 1, "uid-other", 0, 16))
	w.lead()
	w.create("important", 16, priority(10), requestsCPU("32"))
	w.waitEvicted("low", "important", "gpu-1")
	w.create("other", 16, priority(-10), on("gpu-3", "GPU-0", 16))
	w.waitCached(w.pod("other"), true)
	return w, end
}

// newHogged is newEvicted once hog, which is more important, has the processors of gpu-1.
func newHogged(t *testing.T) (w *world, end func()) {
	t.Helper()
	w, end = newEvicted(t)
	w.create("hog", 0, cpus("60"), priority(20), onlyOn("gpu-1"))
	w.waitBound("hog")
	return w, end
}

func TestAPodWaitsForItsNodeHoweverOftenItIsTried(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, end := newEvicted(t)
		for range 3 {
			w.tries("important")
			time.Sleep(tickTime)
		}
		end()
		w.report(node("gpu-1", 1))
		w.waitBound("important")
		if w.pod("other") == nil {
			t.Error("other was evicted in vain")
		}
	})
}

// A more important pod took the processors of gpu-1.
func TestWhoseNodeHasACardAndNoProcessorsIsPlacedElsewhere(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, end := newHogged(t)
		end()
		w.report(node("gpu-1", 1))
		w.eventually("other is evicted", func() bool { return w.pod("other") == nil })
		w.report(node("gpu-3", 1))
		w.waitBound("important")
	})
}

func TestNobodyIsEvictedWhereAnotherNodeThanTheOneWithoutProcessorsIsBeingReleased(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, end := newHogged(t)
		w.loses("gone")
		end()
		w.report(node("gpu-1", 1))
		w.eventually("it waits for gpu-2", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-2" })
		w.report(node("gpu-2", 1))
		w.waitBound("important")
		if w.pod("other") == nil {
			t.Error("other was evicted in vain")
		}
	})
}

// Pods of a Job, say, are gone only once the Job has counted them.
func TestNoCardIsKeptForAPodThatIsBeingDeleted(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, _ := newEvicted(t)
		w.create("next", 6, priority(10)) // 6 are free all the time
		w.waitRefused("next")
		time.Sleep(2 * tickTime)
		w.change("important", func(pod *v1.Pod) {
			now := metav1.Now()
			pod.DeletionTimestamp, pod.Finalizers = &now, []string{"batch.kubernetes.io/job-tracking"}
		})
		w.waitBound("next")
	})
}

func usesPort(pod *v1.Pod) {
	pod.Spec.Containers[0].Ports = []v1.ContainerPort{{ContainerPort: 80, HostPort: 80, Protocol: v1.ProtocolTCP}}
}

// Its card is free, and web still has the port that it needs. stuck ends late on the other card.
func TestNodeAndCardAreKeptForAPodThatWaitsForAPort(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("stuck", 16, priority(20), on("gpu-1", "GPU-0", 16))
		s.create("low", 16, priority(-5), on("gpu-1", "GPU-1", 16))
		s.create("web", 0, priority(-5), usesPort, func(pod *v1.Pod) { pod.Spec.NodeName = "gpu-1" })
		s.linger("stuck")
		end := s.linger("web")
		w := s.start(node("gpu-1", 2, "uid-stuck", 0, 16, "uid-low", 1, 16), node("gpu-2", 1, "uid-other", 0, 16))
		w.lead()
		w.create("important", 16, priority(10), usesPort)
		w.waitEvicted("web", "important", "gpu-1")
		w.waitSeen("low", false)
		w.create("other", 16, priority(-10), on("gpu-2", "GPU-0", 16))
		w.delete("stuck")
		w.report(node("gpu-1", 2, "uid-stuck", 0, 16))
		w.tries("important")
		time.Sleep(tickTime)
		w.create("next", 16, priority(10), onlyOn("gpu-1"))
		w.waitRefused("next")
		end()
		w.waitBound("important")
		if w.pod("other") == nil {
			t.Error("other was evicted in vain")
		}
	})
}

// The cards of gpu-2 are free, and its processors would be.
func TestNobodyIsEvictedForProcessorsWhileAnotherNodeIsBeingReleased(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 16), node("gpu-2", 1))
		w.create("hog", 0, cpus("60"), func(pod *v1.Pod) { pod.Spec.NodeName = "gpu-2" })
		w.create("gone", 16, on("gpu-1", "GPU-0", 16))
		w.loses("gone")
		w.create("important", 16, priority(10), requestsCPU("32"))
		w.waitRefused("important")
		w.report(node("gpu-1", 1))
		w.waitBound("important")
		if w.pod("hog") == nil {
			t.Error("hog was evicted in vain")
		}
	})
}

func TestOthersAreEvictedWhereTheNodeThatIsBeingReleasedIsNoneForThePod(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 16), node("gpu-2", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-2", "GPU-0", 16))
		w.create("gone", 16, on("gpu-1", "GPU-0", 16))
		w.loses("gone")
		w.create("important", 16, priority(10), onlyOn("gpu-2"))
		w.eventually("low is evicted", func() bool { return w.pod("low") == nil })
	})
}

func TestOthersAreEvictedWhereTheNodeThatIsBeingReleasedIsKeptForAnotherPod(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 16), node("gpu-2", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-2", "GPU-0", 16))
		w.create("gone", 16, on("gpu-1", "GPU-0", 16))
		w.loses("gone")
		w.create("first", 16, priority(10))
		w.eventually("it waits for gpu-1", func() bool { return w.pod("first").Status.NominatedNodeName == "gpu-1" })
		w.create("second", 16, priority(10))
		w.eventually("low is evicted", func() bool { return w.pod("low") == nil })
	})
}

func TestNoNodeIsKeptForAPodThatCouldEvictNobody(t *testing.T) {
	polite := func(pod *v1.Pod) {
		never := v1.PreemptNever
		pod.Spec.PreemptionPolicy = &never
	}
	for name, is := range map[string]func(*v1.Pod){"it may not": polite, "all are as important": priority(0)} {
		t.Run(name, virtually(func(t *testing.T) {
			w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 16), node("gpu-2", 1, "uid-equal", 0, 16))
			w.create("equal", 16, on("gpu-2", "GPU-0", 16))
			w.create("gone", 16, on("gpu-1", "GPU-0", 16))
			w.loses("gone")
			w.create("waits", 16, priority(10), is)
			w.waitRefused("waits")
			if kept := w.pod("waits").Status.NominatedNodeName; kept != "" {
				t.Errorf("%s is kept for it", kept)
			}
		}))
	}
}

// gpu-1 can take it no more, whatever low leaves, and low does not end.
func TestWhoseNodeCanTakeItNoMoreIsPlacedElsewhereAtOnce(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"it shares no cards any more": func(w *world) { w.factory.core.dropShareNode("gpu-1") },
		"a more important pod has units of the card": func(w *world) {
			w.create("urgent", 6, priority(20))
			w.waitBound("urgent")
		},
	} {
		t.Run(name, virtually(func(t *testing.T) {
			w, _ := newEvicted(t)
			time.Sleep(2 * tickTime)
			happens(w)
			w.eventually("other is evicted", func() bool { return w.pod("other") == nil })
			w.report(node("gpu-3", 1))
			w.waitBound("important")
		}))
	}
}

// It needs the units of gone, and those of one of the others.
func TestTheUnitsOfAPodThatIsGoneCountWhereOthersAreEvicted(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 8, "uid-x", 0, 4, "uid-y", 0, 4))
		w.create("gone", 8, on("gpu-1", "GPU-0", 8))
		lows := []string{"x", "y"}
		for _, name := range lows {
			w.create(name, 4, on("gpu-1", "GPU-0", 4))
		}
		w.loses("gone")
		w.create("important", 12, priority(10))
		left := func() []string {
			return slices.DeleteFunc(slices.Clone(lows), func(name string) bool { return w.pod(name) == nil })
		}
		w.eventually("one is evicted", func() bool { return len(left()) < 2 })
		time.Sleep(tickTime)
		if len(left()) != 1 {
			t.Fatal("both were evicted")
		}
		w.report(node("gpu-1", 1, "uid-"+left()[0], 0, 4))
		w.waitBound("important")
	})
}

// gone hangs.
func TestOthersAreEvictedOnceANodeIsExpectedToBeReleasedNoMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, end := newHogged(t)
		w.loses("gone")
		end()
		w.report(node("gpu-1", 1))
		w.eventually("it waits for gpu-2", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-2" })
		w.within(ledger.GoneTime+2*tickTime, "other is evicted", func() bool { return w.pod("other") == nil })
		w.report(node("gpu-3", 1))
		w.waitBound("important")
	})
}

// equal is as important, and takes long to end.
func TestNobodyWaitsForAPodThatCouldNotBeEvictedForIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Retry = patience
		s.create("low", 10, priority(-5), on("gpu-1", "GPU-0", 10))
		s.create("equal", 16, priority(10), on("gpu-1", "GPU-1", 16))
		s.linger("low")
		s.linger("equal")
		w := s.start(node("gpu-1", 2, "uid-low", 0, 10, "uid-equal", 1, 16), node("gpu-2", 1, "uid-other", 0, 16))
		w.lead()
		w.delete("equal")
		w.create("important", 16, priority(10))
		w.waitEvicted("low", "important", "gpu-1")
		w.create("other", 16, priority(-10), on("gpu-2", "GPU-0", 16))
		w.waitCached(w.pod("other"), true)
		w.create("urgent", 6, priority(20), onlyOn("gpu-1"))
		w.waitBound("urgent")
		w.eventually("other is evicted", func() bool { return w.pod("other") == nil })
	})
}

// gone hangs: nobody knows when its units are released.
func TestWhoWaitedForAPodThatHangsDoesNotWaitForAnEqualNext(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-gone", 0, 8, "uid-equal", 0, 8), node("gpu-2", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-2", "GPU-0", 16))
		w.create("equal", 8, priority(10), on("gpu-1", "GPU-0", 8))
		w.create("gone", 8, on("gpu-1", "GPU-0", 8))
		w.loses("gone")
		w.create("important", 8, priority(10))
		w.eventually("it waits for gpu-1", func() bool { return w.pod("important").Status.NominatedNodeName == "gpu-1" })
		w.linger("equal")
		w.delete("equal")
		w.within(ledger.GoneTime+2*tickTime, "low is evicted", func() bool { return w.pod("low") == nil })
	})
}

// The policy of its node lets nobody be evicted there.
func TestNobodyIsEvictedElsewhereWhileANodeWithoutEvictionsIsBeingReleased(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		kept, released := node("gpu-1", 1, "uid-gone", 0, 16), node("gpu-1", 1)
		kept.Preempts, released.Preempts = false, false
		w := newWorld(t, kept, node("gpu-2", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-2", "GPU-0", 16))
		w.create("gone", 16, on("gpu-1", "GPU-0", 16))
		w.loses("gone")
		w.create("important", 16, priority(10))
		w.waitRefused("important")
		w.report(released)
		w.waitBound("important")
		if w.pod("low") == nil {
			t.Error("low was evicted in vain")
		}
	})
}
