package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"

	"gpushare.io/scheduler/internal/cards"
)

// gated returns how many pods the schedulers of this process keep out of their queues.
func gated(t testing.TB) int {
	t.Helper()
	if !countsGated {
		t.Skip("the gate keeps nobody out of this version")
	}
	schedulermetrics.Register()
	value, err := testutil.GetGaugeMetricValue(schedulermetrics.GatedPods())
	if err != nil {
		t.Fatal(err)
	}
	return int(value)
}

func (w *world) waitGated(want int) {
	w.t.Helper()
	w.within(patience, fmt.Sprintf("%d pods are gated", want), func() bool { return gated(w.t) == want })
}

// waitAtRest returns once a pod is gated, where the gate keeps pods out.
func (w *world) waitAtRest(name string) {
	w.t.Helper()
	w.waitRefused(name)
	w.within(patience, name+" is at rest", func() bool { return w.attempts.isKept(name) || !countsGated })
}

// The number of gated pods is that of the process.
func TestAPodAtRestIsGatedUntilItsCardIsFree(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		before := gated(t)
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.create("a", 4)
		w.create("b", 4, elsewhereOnly)
		w.waitRefused("a")
		w.waitRefused("b")
		tried := w.attempts.of("a")
		w.waitGated(before + 2) // nobody has asked others about b
		if now := w.attempts.of("a"); now != tried {
			t.Errorf("%d attempts, and %d before", now, tried)
		}
		w.report(node("gpu-1", 1))
		w.waitBound("a")
		w.waitGated(before + 1)
	})
}

func TestAPodAtRestIsWokenByThePodThatIsGone(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		w.create("first", 16)
		w.waitBound("first")
		w.create("a", 4)
		w.waitAtRest("a")
		w.delete("first")
		w.waitBound("a")
	})
}

func TestAPodAtRestIsWokenByANodeThatIsAdded(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.report(node("gpu-2", 1))
		w.create("a", 4)
		w.waitAtRest("a")
		w.addNode("gpu-2")
		w.waitBound("a")
	})
}

// newBehindTaint starts a scheduler with a pod at rest, whose only node has room, and a taint that keeps the pod away.
func newBehindTaint(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
	w.changeNode("gpu-1", inTeam)
	w.create("a", 4)
	w.waitAtRest("a")
	w.report(node("gpu-1", 1))
	return w
}

func TestAPodAtRestIsWokenByItsNodesTaints(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newBehindTaint(t)
		w.changeNode("gpu-1", func(node *v1.Node) { node.Spec.Taints = nil })
		w.waitBound("a")
	})
}

func TestAPodAtRestIsWokenByItsTolerations(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newBehindTaint(t)
		w.change("a", toleratesAll)
		w.waitBound("a")
	})
}

func TestAPodThatIsGoneIsNotGatedAnyMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.create("a", 4)
		w.waitAtRest("a")
		w.delete("a")
		w.waitSeen("a", false)
		w.create("a", 4)
		w.waitRefused("a")
	})
}

// Pods of a StatefulSet, say. The watch was interrupted while one was deleted and its successor created.
func TestASuccessorOfAPodAtRestIsTriedAndWoken(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.create("a", 4)
		w.waitAtRest("a")
		tried := w.attempts.of("a")
		w.change("a", func(pod *v1.Pod) {
			pod.UID = "uid-successor"
			pod.Status = v1.PodStatus{}
		})
		w.eventually("it is tried", func() bool { return w.attempts.of("a") > tried })
		w.report(node("gpu-1", 1))
		w.waitBound("a")
	})
}

// Others offer nvidia.com/gpu as well: it is ours while the GPUShareNode of some node has it.
func TestAPodAtRestIsTriedOnceItsResourceIsOursNoMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		const card = "nvidia.com/gpu"
		full := node("gpu-1", 1, "uid-x", 0, 16)
		full.Resources = []cards.Resource{{Name: card, Class: cards.Whole}}
		w := newWorld(t, full)
		w.changeNode("gpu-1", func(node *v1.Node) { node.Status.Allocatable[card] = resource.MustParse("1") })
		w.create("a", 0, func(pod *v1.Pod) { pod.Spec.Containers[0].Resources.Limits[card] = resource.MustParse("1") })
		w.waitAtRest("a")
		w.factory.core.dropShareNode("gpu-1")
		w.waitBound("a")
	})
}

// A container may not ask for two of our resources. Others' card beside our memory is its own affair.
func TestAPodThatNoNodeCouldTakeIsTriedOnceItsResourceIsOursNoMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		const card = "nvidia.com/gpu"
		others := node("gpu-2", 1)
		others.Resources = []cards.Resource{{Name: card, Class: cards.Whole}}
		w := newWorld(t, node("gpu-1", 1), others)
		w.changeNode("gpu-1", func(node *v1.Node) { node.Status.Allocatable[card] = resource.MustParse("1") })
		w.create("a", 4, func(pod *v1.Pod) { pod.Spec.Containers[0].Resources.Limits[card] = resource.MustParse("1") })
		w.waitRefused("a")
		w.factory.core.dropShareNode("gpu-2")
		w.waitBound("a")
	})
}

// We alone have refused the pod, so it would be at rest soon. Our gate hears no events of the plugins that refuse it now.
func TestAPodIsNotAtRestOnceItsResourceIsOursNoMore(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		const card = "nvidia.com/gpu"
		full := node("gpu-1", 1, "uid-x", 0, 16)
		full.Resources = []cards.Resource{{Name: card, Class: cards.Whole}}
		w := newWorld(t, full)
		w.create("a", 0, func(pod *v1.Pod) {
			amounts := pod.Spec.Containers[0].Resources.Limits // and Requests
			amounts[card] = resource.MustParse("1")
		})
		w.waitRefused("a")
		w.factory.core.dropShareNode("gpu-1")
		w.eventually("others refuse it", func() bool { return strings.Contains(w.message("a"), "Insufficient "+card) })
		time.Sleep(20 * tickTime)
		w.changeNode("gpu-1", func(node *v1.Node) { node.Status.Allocatable[card] = resource.MustParse("1") })
		w.waitBound("a")
	})
}

func TestAPodThatAsksForAnotherResourceStaysAtRestMeanwhile(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.create("a", 4)
		w.rest(func() {
			others := node("gpu-2", 1)
			others.Resources = []cards.Resource{{Name: "nvidia.com/gpu", Class: cards.Whole}}
			for range 3 {
				w.report(others)
				w.factory.core.dropShareNode("gpu-2")
				time.Sleep(tickTime)
			}
		}, "a")
	})
}

func TestAPodAtRestIsWokenWhereAnotherIsNominatedNoMore(t *testing.T) {
	for name, happens := range map[string]func(*world){
		"it is gone": func(w *world) { w.delete("important") },
		"its nomination is": func(w *world) {
			w.change("important", func(pod *v1.Pod) { pod.Status.NominatedNodeName = "" })
		},
	} {
		t.Run(name, virtually(func(t *testing.T) {
			w := newWorld(t, node("gpu-1", 1))
			w.create("important", 16, priority(10), func(pod *v1.Pod) {
				pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/not-yet"}} // otherwise it loses its nomination
			})
			w.waitSeen("important", true)
			w.change("important", func(pod *v1.Pod) { pod.Status.NominatedNodeName = "gpu-1" })
			w.eventually("it is nominated", func() bool { return len(w.factory.core.handle.NominatedPodsForNode("gpu-1")) == 1 })
			w.create("a", 4)
			w.waitAtRest("a")
			happens(w)
			w.waitBound("a")
		}))
	}
}

// It is in no queue, say. Whoever wants it tried later would be refused.
func TestAPodOfWhichTheSchedulerDoesNotAskTheGateIsNotKeptOutLater(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, pod := newWorld(t, node("gpu-1", 1)), podOf("a", 4)
		w.factory.core.rest(context.Background(), []*v1.Pod{pod})
		if w.factory.core.resting.remove(pod.UID) {
			t.Error("it is kept out")
		}
	})
}

// So does the scheduler itself for a pod for which it could not evict others in the end.
func TestAPodAtRestThatAnotherPluginActivatesIsTried(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.create("a", 4)
		w.waitAtRest("a")
		tried := w.attempts.of("a")
		w.factory.core.handle.Activate(klog.Background(), map[string]*v1.Pod{"default/a": w.pod("a")})
		w.eventually("it is tried", func() bool { return w.attempts.of("a") > tried })
	})
}

func TestWithoutTheGateNobodyIsTriedForIt(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		s := newServer(t)
		s.withoutGate = true
		w := s.start(node("gpu-1", 1, "uid-x", 0, 16))
		w.lead()
		w.create("a", 4)
		w.waitRefused("a")
		w.rest(func() { time.Sleep(12 * tickTime) }, "a")
	})
}

func gateOf(t *testing.T, factory *Factory, profile string) *Gate {
	t.Helper()
	handle, err := frameworkruntime.NewFramework(t.Context(), nil, &config.KubeSchedulerProfile{SchedulerName: profile})
	if err != nil {
		t.Fatal(err)
	}
	gate, err := factory.newGate(t.Context(), nil, handle)
	if err != nil {
		t.Fatal(err)
	}
	return gate.(*Gate)
}

// While the waker has the scheduler ask about many, one of them may be tried and come back: another plugin may have refused it then.
func TestAPodThatIsTriedMeanwhileIsNotKeptOut(t *testing.T) {
	b, pod := newBench(t, node("gpu-1", 1, "uid-x", 0, 16)), podOf("a", 4)
	gate := &Gate{&Factory{core: b.core}}
	b.begin(pod)
	b.resting.add(pod)
	b.begin(pod)
	if status := gate.PreEnqueue(t.Context(), pod); !status.IsSuccess() {
		t.Error(status)
	}
}

func TestAGateWithoutThePluginLetsAllPass(t *testing.T) {
	if status := gateOf(t, &Factory{}, schedulerName).PreEnqueue(t.Context(), &v1.Pod{}); !status.IsSuccess() {
		t.Error(status)
	}
}

func TestAGateIsThatOfItsProfile(t *testing.T) {
	factory := &Factory{}
	gateOf(t, factory, "gated")
	for profile, want := range map[string]bool{"gated": countsGated, "another": false} {
		if factory.hasGate(profile) != want {
			t.Errorf("%s has the gate: %v", profile, !want)
		}
	}
}
