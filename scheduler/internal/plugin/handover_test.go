package plugin

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gpushare.io/scheduler/internal/sharenode"
)

// delay has each Binding be under way for a time, and returns how many were sent.
func (s *server) delay(duration time.Duration) *atomic.Int32 {
	sent := &atomic.Int32{}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.onBind = func(*v1.Binding) error {
		sent.Add(1)
		time.Sleep(duration)
		return nil
	}
	return sent
}

// read counts what is bound.
func (b *books) read(s *server) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for name, binding := range s.bindings {
		if b.pods[name] == nil {
			b.bind(binding)
		}
	}
}

// urgent has a pod placed before others, which it does not evict.
func urgent(value int32) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		never := v1.PreemptNever
		pod.Spec.Priority, pod.Spec.PreemptionPolicy = &value, &never
	}
}

func threeNodes() []*sharenode.Node {
	return []*sharenode.Node{node("gpu-1", 2), node("gpu-2", 2), node("gpu-3", 2)}
}

// The leader is killed in the middle of a burst, again and again: the API server handles what it has sent, while the
// next leader places more important pods first, which would be on the same cards if it did not wait.
func TestLeadersThatAreKilledInABurst(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		sent, books := s.delay(s.timing.Uncertain/2), s.books()
		s.takesAnyVersion = true
		leaders := make([]*world, 5)
		for place := range leaders {
			leaders[place] = s.start(node("gpu-1", 4), node("gpu-2", 4), node("gpu-3", 4))
		}
		for generation, leader := range leaders {
			for _, name := range numbered(string(rune('a'+generation)), 4) {
				s.create(name, 12, urgent(int32(generation)))
			}
			before := sent.Load()
			leader.lead()
			if generation < len(leaders)-1 {
				s.eventually("a Binding is under way", func() bool {
					books.read(s)
					return sent.Load() > before || len(books.pods) >= 12
				})
				leader.kill()
			}
		}
		s.eventually("all cards are full", func() bool {
			books.read(s)
			return len(books.pods) >= 12
		})
		time.Sleep(2 * s.timing.Uncertain) // what is under way takes effect
		books.read(s)
		if books.worst > 16 || len(books.pods) != 12 {
			t.Errorf("%d pods are bound, and one card had %d units of 16", len(books.pods), books.worst)
		}
	})
}

// A leader that is stopped lets its Bindings end: the next one need not wait until the Lease expires.
func TestALeaderThatIsStoppedInABurst(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Duration = 10 * patience
		sent, books := s.delay(s.timing.Uncertain/4), s.books()
		leader, next := s.start(threeNodes()...), s.start(threeNodes()...)
		leader.lead()
		first := numbered("first", 4)
		for _, name := range first {
			s.create(name, 8)
		}
		s.eventually("a Binding is under way", func() bool { return sent.Load() > 0 })
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := leader.factory.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		if holder := s.leases.holder(); holder != "" {
			t.Errorf("%s holds the Lease still", holder)
		}
		leader.kill()
		for _, name := range numbered("second", 8) {
			s.create(name, 8, urgent(1))
		}
		next.lead()
		s.waitBound(first...)
		s.waitBound(numbered("second", 8)...)
		books.read(s)
		if books.worst != 16 {
			t.Errorf("one card had %d units of 16", books.worst)
		}
	})
}

func TestWhatAnExtenderHasBoundCounts(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.leases.hold("extender-1_x", 300)
		w := s.start(node("gpu-1", 1))
		w.lead()
		s.create("a", 8)
		s.create("plain", 0)
		s.waitBound("plain")
		want := "extender-1_x binds pods: this scheduler takes over in"
		s.eventually("a waits for the extender", func() bool { return strings.Contains(s.message("a"), want) })
		if reserved := w.factory.core.cluster.Reserved(); len(reserved) > 0 {
			t.Errorf("while an extender binds there are reservations: %v", reserved)
		}
		late := podOf("late", 12)
		on("gpu-1", "GPU-0", 12)(late)
		s.mutex.Lock()
		s.unseen = []*v1.Pod{late}
		s.mutex.Unlock()
		s.leases.release()
		want = "insufficient GPU memory in one card: asked 8, largest free 4"
		s.eventually("a is tried again", func() bool { return strings.Contains(s.message("a"), want) })
		s.create("b", 4)
		s.waitBound("b")
	})
}

func TestAnExtenderThatDiesIsWaitedFor(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.leases.hold("extender-1_x", 2)
		began := time.Now()
		w := s.start(node("gpu-1", 1))
		w.lead()
		s.create("a", 8)
		s.waitBound("a")
		if waited := time.Since(began); waited < 2*time.Second {
			t.Errorf("a was bound after %s", waited)
		}
	})
}

func TestAllProfilesUseOneLease(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		handle := w.sched.Profiles[schedulerName]
		for namespace, isFine := range map[string]bool{"gpushare-system": true, "another": false} {
			args := &runtime.Unknown{Raw: []byte(`{"extenderLeaseNamespace":"` + namespace + `"}`)}
			if _, err := w.factory.New(context.Background(), args, handle); (err == nil) != isFine {
				t.Errorf("%s: error %v", namespace, err)
			}
		}
	})
}

// An extender takes the Lease once it is given back.
func TestAnExtenderMayBindOnceNothingIsUnderWay(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.timing.Duration = 10 * patience
		holders := make(chan string, 10)
		s.onBind = func(*v1.Binding) error { holders <- s.leases.holder(); return nil }
		w := s.start(node("gpu-1", 1))
		w.lead()
		s.create("a", 8)
		s.waitBound("a")
		if <-holders == "" {
			t.Error("a was bound without the Lease")
		}
		s.eventually("the Lease is given back", func() bool { return s.leases.holder() == "" })
		s.leases.hold("extender-1_x", 300)
		s.create("b", 8)
		s.waitRefused("b")
		if s.binding("b") != nil {
			t.Error("two bind pods at a time")
		}
	})
}

// Nobody can renew the Lease meanwhile, and nobody knows what became of the Bindings under way.
func TestAnAPIServerThatIsAwayForAWhile(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		sent, books := s.delay(s.timing.Uncertain/4), s.books()
		w := s.start(threeNodes()...)
		w.lead()
		names := numbered("a", 12)
		for _, name := range names {
			s.create(name, 8)
		}
		s.eventually("a Binding is under way", func() bool { return sent.Load() > 0 })
		s.away(true)
		time.Sleep(s.timing.Duration)
		s.away(false)
		s.waitBound(names...)
		books.read(s)
		if books.worst != 16 {
			t.Errorf("one card had %d units of 16", books.worst)
		}
	})
}

// The watch shows that a pod has ended before the answer to its Binding is there.
func TestAPodThatIsRejectedBeforeItsBindingIsAnswered(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		w := s.start(node("gpu-1", 1))
		s.afterBind = func(binding *v1.Binding) {
			pod := s.pod(binding.Name)
			pod.Status.Phase, pod.Status.Reason = v1.PodFailed, "OutOfgpushare.io/memory"
			s.end(pod)
			for end := time.Now().Add(patience); w.factory.core.cluster.Holder(pod.UID) != nil && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
		}
		w.lead()
		s.create("a", 4)
		s.eventually("gpu-1 is paused", func() bool { return w.factory.core.pauses.Reason("gpu-1") != "" })
	})
}

// The pod's victim ends late, and the pod other would be cheaper to evict now.
func TestTheNextLeaderKeepsTheNodeOfANominatedPodUntilItMayBind(t *testing.T) {
	for why, before := range map[string]func(s *server, next *core){
		"takes over in": func(*server, *core) {},
		"are not read yet": func(s *server, next *core) {
			s.leases.release()
			isRead := time.Now().Add(4 * tickTime)
			next.synced = append(next.synced, func() bool { return time.Now().After(isRead) })
		},
	} {
		t.Run(why, virtually(func(t *testing.T) {
			w, end := newEvicted(t)
			w.timing.Retry = tickTime / 10
			next := w.start(node("gpu-1", 1, "uid-low", 0, 10), node("gpu-2", 1, "uid-gone", 0, 16), node("gpu-3", 1, "uid-other", 0, 16))
			w.kill()
			before(w.server, next.factory.core)
			next.lead()
			for _, shown := range []string{why, "the pod waits until its node has released"} {
				w.eventually(shown, func() bool { return strings.Contains(w.message("important"), shown) })
			}
			end()
			next.report(node("gpu-1", 1))
			w.waitBound("important")
			if w.pod("other") == nil {
				t.Error("other was evicted in vain")
			}
		}))
	}
}

// expectLeaseFree expects that nobody takes the Lease for a while.
func (s *server) expectLeaseFree() {
	s.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(s.timing.Renew / 4) {
		if holder := s.leases.holder(); holder != "" {
			s.t.Fatalf("%s holds the Lease", holder)
		}
	}
}

// This scheduler cannot place the pod yet, and others can.
func TestTheNextLeaderLeavesTheLeaseToOthersUntilAllIsRead(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, _ := newEvicted(t)
		next := w.start(node("gpu-1", 1, "uid-low", 0, 10))
		w.kill()
		w.leases.release()
		next.factory.core.synced = append(next.factory.core.synced, func() bool { return false })
		next.lead()
		w.expectLeaseFree()
		if attempts := next.attempts.of("important"); attempts > 3 {
			t.Errorf("%d attempts", attempts)
		}
	})
}

func TestASchedulerWhosePodsAreGoneLeavesTheLeaseToOthers(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.leases.hold("extender-1_x", 300)
		w := s.start(node("gpu-1", 1))
		w.lead()
		s.create("a", 4)
		s.waitRefused("a")
		s.delete("a")
		w.waitSeen("a", false)
		time.Sleep(2 * s.timing.Idle)
		s.leases.release()
		s.expectLeaseFree()
	})
}

// oversleep stops a leader for a time within its first attempt, once it holds the Lease. Shortly after it has woken, show has its
// watches show what has happened.
func (w *world) oversleep(duration time.Duration, show func()) {
	core := w.factory.core
	hold := core.hold
	core.hold = func(ctx context.Context) (uint64, error) {
		core.hold = hold
		holding, err := hold(ctx)
		time.Sleep(duration)
		time.AfterFunc(tickTime/10, show)
		return holding, err
	}
}

func TestALeaderThatOversleepsEvictsNobodyBesideTheNextOne(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.create("low", 16, priority(-5), on("gpu-1", "GPU-0", 16))
		first, second := node("gpu-1", 1, "uid-low", 0, 16), node("gpu-2", 1, "uid-other", 0, 16)
		leader, next := s.start(first, &sharenode.Node{Name: "gpu-2"}), s.start(first, second)
		leader.oversleep(patience, func() { leader.report(second) })
		leader.lead()
		s.create("important", 16, priority(10))
		isTried := func() bool { return leader.attempts.of("important") > 0 }
		s.eventually("the Lease is given back", func() bool { return isTried() && s.leases.holder() == "" })
		s.create("other", 16, priority(-10), on("gpu-2", "GPU-0", 16))
		end := s.linger("other")
		next.waitCached(s.pod("other"), true)
		next.lead()
		next.waitEvicted("other", "important", "gpu-2")
		time.Sleep(patience + 2*tickTime)
		end()
		leader.report(node("gpu-2", 1))
		next.report(node("gpu-2", 1))
		s.waitBound("important")
		if s.pod("low") == nil {
			t.Error("low was evicted in vain")
		}
	})
}
