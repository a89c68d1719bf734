package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
)

// pinned has a pod ask for one node by name, as those of a DaemonSet: the scheduler looks at no other.
func pinned(node string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchFields: []v1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: v1.NodeSelectorOpIn, Values: []string{node},
				}},
			}}},
		}}
	}
}

// withoutClaim has a pod ask for a volume that is not there: it is refused before any node is looked at.
func withoutClaim(pod *v1.Pod) {
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
		PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "nowhere"},
	}}}
}

func elsewhereOnly(pod *v1.Pod) {
	pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "nowhere"}
}

// rest expects that nobody of names is tried while something happens, and for a while after it.
func (w *world) rest(happens func(), names ...string) {
	w.t.Helper()
	before := map[string]int{}
	for _, name := range names {
		w.waitRefused(name)
		before[name] = w.attempts.of(name)
	}
	time.Sleep(2 * tickTime) // what had changed when they were refused
	for _, name := range names {
		before[name] = w.attempts.of(name)
	}
	happens()
	time.Sleep(2*tickTime + tickTime/2)
	for _, name := range names {
		if now := w.attempts.of(name); now != before[name] {
			w.t.Errorf("%s had %d attempts, and %d before", name, now, before[name])
		}
	}
}

func TestWhoWaitsForSomethingElseIsNotWokenByReports(t *testing.T) {
	for name, change := range map[string]func(*v1.Pod){
		"a node that is full": pinned("gpu-2"), "a volume": withoutClaim, "a label": elsewhereOnly,
	} {
		t.Run(name, virtually(func(t *testing.T) {
			w := newWorld(t, node("gpu-1", 1), node("gpu-2", 1, "uid-x", 0, 16))
			w.create("a", 4, change)
			w.rest(func() {
				for range 5 {
					w.report(node("gpu-1", 1))
					time.Sleep(tickTime / 10)
				}
			}, "a")
		}))
	}
}

// The plugins that refuse the pod wake it by events of their own.
func TestAPodThatOtherPluginsAloneRefuseIsNotWokenByNewNodes(t *testing.T) {
	for name, change := range map[string]func(*v1.Pod){
		"processors": requestsCPU("100"), "a label": elsewhereOnly, "no node may take it": twoResources,
	} {
		t.Run(name, virtually(func(t *testing.T) {
			w := newWorld(t, node("gpu-1", 1))
			w.create("a", 4, change)
			w.rest(func() {
				for _, name := range []string{"gpu-2", "gpu-3"} {
					w.report(node(name, 1))
					time.Sleep(tickTime / 10)
					w.addNode(name)
				}
			}, "a")
		}))
	}
}

// By cards alone evictions would help it, and it is tried once for that.
func TestWhomEvictionsDoNotHelpIsNotTriedAtEachReport(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-low", 0, 16))
		w.create("low", 16, on("gpu-1", "GPU-0", 16))
		w.waitSeen("low", true)
		w.create("a", 16, priority(10), elsewhereOnly)
		w.waitRefused("a")
		w.report(node("gpu-1", 1, "uid-low", 0, 16))
		time.Sleep(2 * tickTime)
		w.rest(func() {
			for range 4 {
				w.report(node("gpu-1", 1, "uid-low", 0, 16))
				time.Sleep(tickTime)
			}
		}, "a")
	})
}

func TestWhoWaitsForSomethingElseIsNotWokenByBinds(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 2))
		w.create("a", 4, elsewhereOnly)
		w.rest(func() {
			for number := range 5 {
				name := fmt.Sprintf("other-%d", number)
				w.create(name, 2)
				w.waitBound(name)
				w.report(node("gpu-1", 2, "uid-"+name, 1, 2))
			}
		}, "a")
	})
}

func TestWhoWaitsForACardIsNotWokenByTaints(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16), node("gpu-2", 1, "uid-y", 0, 16))
		w.create("a", 4)
		w.rest(func() {
			w.changeNode("gpu-1", func(node *v1.Node) {
				node.Spec.Taints = []v1.Taint{{Key: "x", Effect: v1.TaintEffectPreferNoSchedule}}
			})
		}, "a")
	})
}

// changeNode writes a node anew.
func (s *server) changeNode(name string, change func(*v1.Node)) {
	s.t.Helper()
	nodes := s.client.CoreV1().Nodes()
	changed, err := nodes.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	change(changed)
	if _, err := nodes.Update(context.Background(), changed, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func toleratesAll(pod *v1.Pod) {
	pod.Spec.Tolerations = []v1.Toleration{{Operator: v1.TolerationOpExists}}
}

func inTeam(node *v1.Node) {
	node.Labels["team"] = "a"
	node.Spec.Taints = []v1.Taint{{Key: "team", Effect: v1.TaintEffectNoSchedule}}
}

func TestWhoMayNotBeOnANodeIsNotWokenByItsRoomAndIsOnceItMay(t *testing.T) {
	for name, may := range map[string]func(*v1.Node){
		"its labels": func(node *v1.Node) { node.Labels["team"] = "b" },
		"its taints": func(node *v1.Node) { node.Spec.Taints = nil },
	} {
		t.Run(name, virtually(func(t *testing.T) {
			w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
			w.changeNode("gpu-1", inTeam)
			waiting := numbered("waits", 5)
			for _, one := range waiting {
				w.create(one, 4, func(pod *v1.Pod) {
					if name == "its labels" {
						pod.Spec.NodeSelector = map[string]string{"team": "b"}
						toleratesAll(pod)
					}
				})
			}
			w.rest(func() { w.report(node("gpu-1", 1)) }, waiting...)
			w.changeNode("gpu-1", may)
			w.eventually("four are bound", func() bool { return len(w.boundOf(waiting)) == 4 })
		}))
	}
}

func TestWhoToleratesATaintLaterIsTriedAtOnce(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.changeNode("gpu-1", inTeam)
		w.create("a", 4)
		w.waitRefused("a")
		w.report(node("gpu-1", 1))
		time.Sleep(2 * tickTime)
		w.change("a", toleratesAll)
		w.waitBound("a")
	})
}

func TestAPinnedPodIsWokenForItsNode(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1), node("gpu-2", 1, "uid-x", 0, 16))
		w.create("a", 4, pinned("gpu-2"))
		w.waitRefused("a")
		time.Sleep(2 * tickTime)
		w.report(node("gpu-2", 1))
		w.waitBound("a")
	})
}

func TestOneFreedCardWakesOne(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
		w.create("x", 16, on("gpu-1", "GPU-0", 16))
		w.waitSeen("x", true)
		waiting := numbered("waits", 10)
		for _, name := range waiting {
			w.create(name, 16)
		}
		for _, name := range waiting {
			w.waitRefused(name)
		}
		time.Sleep(2 * tickTime)
		attempts := func() int {
			sum := 0
			for _, name := range waiting {
				sum += w.attempts.of(name)
			}
			return sum
		}
		before := attempts()
		w.report(node("gpu-1", 1)) // the kubelet has released its units before the pod is gone
		w.delete("x")
		w.eventually("one is bound", func() bool { return len(w.boundOf(waiting)) > 0 })
		time.Sleep(2 * tickTime)
		if now := attempts(); now > before+2 {
			t.Errorf("%d attempts", now-before)
		}
	})
}

func TestAPodThatIsGoneBeforeItsAttemptIsForgotten(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-x", 0, 16))
	pod := podOf("a", 4)
	b.podHandler().OnDelete(pod)
	if _, status := b.PreFilter(context.Background(), b.state, pod, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	if b.waiting.Len() > 0 {
		t.Error("it waits for ever")
	}
}

// A watch that was interrupted shows a pod and its successor of the same name as one change.
func TestAPodThatAnotherOneOfItsNameReplacesIsGone(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-a", 0, 16))
	waiting, bound, successor := podOf("w", 4), boundPod("a", "GPU-0", 16), podOf("w", 4)
	successor.UID = "uid-another"
	b.begin(waiting)
	b.podHandler().OnUpdate(waiting, successor)
	if b.waiting.Len() > 0 {
		t.Error("it waits for ever")
	}
	b.cluster.SetPod(bound)
	b.podHandler().OnUpdate(bound, successor)
	if b.cluster.Holder(bound.UID) != nil {
		t.Error("it has its units for ever")
	}
}

func TestAPodThatIsBeingDeletedWaitsNoMore(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-x", 0, 16))
	pod, ending := podOf("a", 4), podOf("a", 4)
	now := metav1.Now()
	ending.DeletionTimestamp, ending.Finalizers = &now, []string{"batch.kubernetes.io/job-tracking"}
	b.begin(pod)
	b.podHandler().OnUpdate(pod, ending)
	if b.waiting.Len() > 0 {
		t.Error("it takes the place of others")
	}
}

func TestAPodThatIsGoneBeforeItsAttemptIsNotTriedOnceTheLeaseIsHeld(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	b.hold = func(context.Context) (uint64, error) { return 0, errors.New("another one binds pods") }
	gone, waiting := podOf("gone", 4), podOf("waits", 4)
	b.podHandler().OnDelete(gone)
	if _, status := b.PreFilter(context.Background(), b.state, gone, nil); status.Code() != fwk.Error {
		t.Fatal(status)
	}
	b.begin(waiting)
	if pods := b.postponed.take(); len(pods) != 1 || pods[0].Name != "waits" {
		t.Errorf("postponed: %v", pods)
	}
}

func TestWhatAPodGetsIsLookedAtAgainWhereItsNodeHasChangedMeanwhile(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	pod := podOf("a", 4)
	b.begin(pod)
	if !b.fits(pod) {
		t.Fatal("it does not fit")
	}
	b.cluster.SetShareNode(node("gpu-1", 1, "uid-x", 0, 16))
	// Refused, it would wait for this node alone: no other had refused it.
	if status := b.Reserve(context.Background(), b.state, pod, "gpu-1"); status.Code() != fwk.Error {
		t.Errorf("status: %v", status)
	}
}

func TestANodeThatComesBackIsLookedAtAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1), node("gpu-2", 1, "uid-x", 0, 16))
		w.create("seen", 4, elsewhereOnly) // gpu-1 fits those that ask for as much
		w.waitRefused("seen")
		if err := w.client.CoreV1().Nodes().Delete(context.Background(), "gpu-1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(tickTime)
		w.create("a", 4)
		w.waitRefused("a")
		time.Sleep(2 * tickTime)
		w.addNode("gpu-1")
		w.waitBound("a")
	})
}

func TestNothingOfASharedNameIsPlacedBeforeAllIsRead(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	b.synced = append(b.synced, func() bool { return false })
	pod := podOf("a", 0)
	pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"] = resource.MustParse("1")
	if code := b.begin(pod); code != fwk.Error {
		t.Errorf("PreFilter says %s", code)
	}
}

func TestUnitsOnAnotherNodeAreFreeAtOnce(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	var noted []string
	b.know(b.handle, func(node string) { noted = append(noted, node) })
	for _, name := range []string{"gpu-1", "gpu-2"} {
		b.cluster.SetShareNode(node(name, 1))
	}
	pod := podOf("a", 16)
	on("gpu-1", "GPU-0", 16)(pod)
	b.cluster.SetPod(pod)
	moved := podOf("a", 16)
	on("gpu-2", "GPU-0", 16)(moved)
	b.cluster.SetPod(moved) // it counts on both
	noted = nil
	b.cluster.SetShareNode(node("gpu-2", 1, "uid-a", 0, 16))
	if !slices.Contains(noted, "gpu-1") {
		t.Errorf("noted: %v", noted)
	}
}

func TestWhoIsKeptFromANodeByANominatedPodRests(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 10))
		w.create("x", 10, on("gpu-1", "GPU-0", 10))
		w.create("important", 16, priority(10))
		w.eventually("x is gone", func() bool { return w.pod("x") == nil })
		small := numbered("small", 10)
		for _, name := range small {
			w.create(name, 6) // 6 are free all the time
		}
		for _, name := range small {
			w.waitRefused(name)
		}
		attempts := func() int {
			sum := 0
			for _, name := range small {
				sum += w.attempts.of(name)
			}
			return sum
		}
		time.Sleep(2 * tickTime)
		before := attempts()
		w.report(node("gpu-1", 1, "uid-x", 0, 10)) // as before
		time.Sleep(3 * tickTime)
		if now := attempts(); now > before+3 {
			t.Errorf("%d attempts", now-before)
		}
		w.report(node("gpu-1", 1))
		w.waitBound("important")
		w.delete("important")
		w.eventually("two of them are bound", func() bool { return len(w.boundOf(small)) == 2 })
	})
}

func TestWhoseReasonIsNotWrittenIsTriedAgain(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w, isLost := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16)), atomic.Bool{}
		w.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return isLost.CompareAndSwap(false, true), nil, errAway
		})
		w.create("a", 4)
		w.within(patience, "it is refused", func() bool { return w.message("a") != "" })
		if !isLost.Load() || w.attempts.of("a") != 2 {
			t.Errorf("%d attempts, the first one's reason is lost: %t", w.attempts.of("a"), isLost.Load())
		}
	})
}

// twoResources has a container ask for units and for a card: the kubelet would give the container only one of the two.
func twoResources(pod *v1.Pod) {
	pod.Spec.Containers[0].Resources.Limits["gpushare.io/card"] = resource.MustParse("1")
}

// A scheduler that led before, and was stopped for a while, tries the pod by what it knew then, and writes that the attempt failed.
func TestAPodWhoseReasonAnotherSchedulerOverwritesIsTriedAgain(t *testing.T) {
	for name, change := range map[string]func(*v1.Pod){
		"no card is free": func(*v1.Pod) {}, "other plugins refuse it": elsewhereOnly, "no node may take it": twoResources,
	} {
		t.Run(name, virtually(func(t *testing.T) {
			w := newWorld(t, node("gpu-1", 1, "uid-x", 0, 16))
			w.create("a", 4, change)
			reason := w.waitRefused("a")
			time.Sleep(20 * tickTime) // it has been seen
			before := w.attempts.of("a")
			failed := v1.PodCondition{Type: v1.PodScheduled, Reason: v1.PodReasonSchedulerError, Message: "this scheduler is being stopped"}
			w.change("a", func(pod *v1.Pod) { mergeCondition(&pod.Status, &failed) })
			w.within(11*tickTime, "the reason is written again", func() bool { return w.message("a") == reason })
			time.Sleep(patience)
			if attempts := w.attempts.of("a") - before; attempts != 1 {
				t.Errorf("%d attempts", attempts)
			}
		}))
	}
}

// Until then its node is kept from other pods.
func TestAPodThatOtherPluginsRefuseLosesItsNomination(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		w := newWorld(t, node("gpu-1", 1))
		w.create("important", 16, priority(10), elsewhereOnly)
		w.waitRefused("important")
		w.change("important", func(pod *v1.Pod) { pod.Status.NominatedNodeName = "gpu-1" })
		w.create("a", 4)
		w.waitRefused("a")
		w.within(12*tickTime, "a is bound", func() bool { return w.binding("a") != nil })
	})
}
