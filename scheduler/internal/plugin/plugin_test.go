package plugin

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"gpushare.io/scheduler/internal/bindcall"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/sharenode"
	"gpushare.io/scheduler/internal/victims"
)

// bench is our plugin alone, with pods that are bound already.
type bench struct {
	*Plugin
	t        testing.TB
	snapshot *cache.Snapshot
	state    fwk.CycleState
}

func newBench(t testing.TB, share *sharenode.Node, bound ...*v1.Pod) *bench {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	api := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: share.Name}}
	snapshot := cache.NewSnapshot(bound, []*v1.Node{api})
	client := fake.NewClientset()
	handle, err := frameworkruntime.NewFramework(ctx, nil, nil,
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
		frameworkruntime.WithPodNominator(noNominator{}))
	if err != nil {
		t.Fatal(err)
	}
	made := newCore(handle, bindcall.RealClock())
	made.know(handle, func(string) {})
	made.cluster.SetShareNode(share)
	for _, pod := range bound {
		made.cluster.SetPod(pod)
	}
	return &bench{&Plugin{core: made, handle: handle}, t, snapshot, framework.NewCycleState()}
}

func (b *bench) info() fwk.NodeInfo {
	b.t.Helper()
	infos, err := b.snapshot.NodeInfos().List()
	if err != nil {
		b.t.Fatal(err)
	}
	return infos[0]
}

func (b *bench) begin(pod *v1.Pod) fwk.Code {
	b.t.Helper()
	waits(b.t, b.handle, pod)
	_, status := b.PreFilter(context.Background(), b.state, pod, nil)
	return status.Code()
}

func (b *bench) fits(pod *v1.Pod) bool {
	return b.Filter(context.Background(), b.state, pod, b.info()).IsSuccess()
}

// waits has the watch of pods show a pod.
func waits(t testing.TB, handle fwk.Handle, pod *v1.Pod) {
	t.Helper()
	if err := handle.SharedInformerFactory().Core().V1().Pods().Informer().GetStore().Add(pod); err != nil {
		t.Fatal(err)
	}
}

func infoOf(t testing.TB, pod *v1.Pod) fwk.PodInfo {
	t.Helper()
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func boundPod(name, card string, units int, change ...func(*v1.Pod)) *v1.Pod {
	pod := podOf(name, units)
	on("gpu-1", card, units)(pod)
	for _, one := range change {
		one(pod)
	}
	return pod
}

func TestPodsThatAskForNothingAreSkipped(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	none := podOf("none", 4)
	none.Spec.Containers[0].Resources.Limits[memory] = *podOf("x", 0).Spec.Containers[0].Resources.Limits.StorageEphemeral()
	for _, pod := range []*v1.Pod{podOf("plain", 0), none, boundPod("resized", "GPU-0", 4)} {
		if code := b.begin(pod); code != fwk.Skip {
			t.Errorf("%s: PreFilter says %s", pod.Name, code)
		}
		if status := b.PreScore(context.Background(), b.state, pod, nil); status.Code() != fwk.Skip {
			t.Errorf("%s: PreScore says %s", pod.Name, status.Code())
		}
		if status := b.Bind(context.Background(), b.state, pod, "gpu-1"); status.Code() != fwk.Skip {
			t.Errorf("%s: Bind says %s", pod.Name, status.Code())
		}
	}
}

func TestOrdinaryPodsAreBatched(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	if fragments, status := b.SignPod(context.Background(), podOf("plain", 0)); !status.IsSuccess() || fragments != nil {
		t.Errorf("a plain pod: %v, %v", fragments, status)
	}
	if _, status := b.SignPod(context.Background(), podOf("shared", 1)); status.Code() != fwk.Unschedulable {
		t.Errorf("a shared pod: %v", status)
	}
}

func TestReservedUnitsAreTakenAtOnce(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	first, second := podOf("first", 10), podOf("second", 10)
	b.begin(first)
	if status := b.Reserve(context.Background(), b.state, first, "gpu-1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	other := framework.NewCycleState()
	b.PreFilter(context.Background(), other, second, nil)
	if b.Filter(context.Background(), other, second, b.info()).IsSuccess() {
		t.Error("the same units fit a second pod")
	}
	if b.Reserve(context.Background(), other, second, "gpu-1").IsSuccess() {
		t.Error("the same units are reserved twice")
	}
	b.Unreserve(context.Background(), b.state, first, "gpu-1")
	b.Unreserve(context.Background(), b.state, first, "gpu-1")
	if !b.Filter(context.Background(), other, second, b.info()).IsSuccess() {
		t.Error("they are not given back")
	}
}

func TestAPodWithUnitsStaysOnItsNode(t *testing.T) {
	bound, pod := podOf("a", 4), podOf("a", 4)
	b := newBench(t, node("gpu-1", 1))
	on("gpu-2", "GPU-0", 4)(bound)
	b.cluster.SetPod(bound)
	b.begin(pod) // the watch shows it unbound still
	status := b.Filter(context.Background(), b.state, pod, b.info())
	want := "node(s) other than gpu-2, where the pod already holds its share of cards and is being bound"
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want {
		t.Errorf("status: %v", status)
	}
}

func TestTrialsAreOfOneState(t *testing.T) {
	low := boundPod("low", "GPU-0", 10)
	b := newBench(t, node("gpu-1", 1), low)
	pod := podOf("a", 10)
	b.begin(pod)
	copied := b.state.Clone()
	ctx := context.Background()
	b.RemovePod(ctx, copied, pod, infoOf(t, low), b.info())
	if !b.Filter(ctx, copied, pod, b.info()).IsSuccess() {
		t.Error("it does not fit without the other one")
	}
	if b.fits(pod) {
		t.Error("it fits beside the other one, too")
	}
	again := copied.Clone()
	b.AddPod(ctx, again, pod, infoOf(t, low), b.info())
	if b.Filter(ctx, again, pod, b.info()).IsSuccess() {
		t.Error("it fits with the other one put back")
	}
	if !b.Filter(ctx, copied, pod, b.info()).IsSuccess() {
		t.Error("the copy has changed with a copy of it")
	}
}

func TestAPodOfADaemonSetIsNoVictim(t *testing.T) {
	yes := true
	daemon := boundPod("daemon", "GPU-0", 10, func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}}
	})
	b := newBench(t, node("gpu-1", 1), daemon)
	pod := podOf("a", 10)
	b.begin(pod)
	b.RemovePod(context.Background(), b.state, pod, infoOf(t, daemon), b.info())
	if b.fits(pod) {
		t.Error("it would be evicted, and come back")
	}
}

func TestANominatedPodHoldsACard(t *testing.T) {
	ending := boundPod("ending", "GPU-0", 10)
	now := metav1.Now()
	ending.DeletionTimestamp = &now
	for _, test := range []struct {
		name      string
		bound     []*v1.Pod
		nominated int
		asked     int
		want      bool
	}{
		{"free units", nil, 10, 6, true},
		{"too few are left", nil, 10, 7, false},
		{"units of one that is ending", []*v1.Pod{ending}, 16, 6, false},
		{"units of a less important one", []*v1.Pod{boundPod("low", "GPU-0", 10, priority(-5))}, 16, 6, false},
		{"what will never be free", []*v1.Pod{boundPod("high", "GPU-0", 10, priority(50))}, 16, 6, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, node("gpu-1", 1), test.bound...)
			pod, nominated := podOf("a", test.asked), podOf("nominated", test.nominated)
			priority(10)(nominated)
			b.begin(pod)
			b.AddPod(context.Background(), b.state, pod, infoOf(t, nominated), b.info())
			if fits := b.fits(pod); fits != test.want {
				t.Errorf("fits: %v", fits)
			}
		})
	}
}

// Its own attempt has chosen the card of weak, which is not ending yet. The other card would be as good.
func TestANominatedPodHoldsTheCardThatIsFreedForIt(t *testing.T) {
	b := newBench(t, node("gpu-1", 2), boundPod("weak", "GPU-1", 16))
	pod, nominated := podOf("a", 13), podOf("nominated", 16)
	priority(10)(nominated)
	places := &sync.Map{}
	places.Store("gpu-1", []cards.Share{{Card: "GPU-1", Units: 16}})
	b.core.places.Store(nominated.UID, places)
	b.begin(pod)
	b.AddPod(context.Background(), b.state, pod, infoOf(t, nominated), b.info())
	if !b.fits(pod) {
		t.Error("it does not get the other card")
	}
	b.core.waitsNoMore(nominated.UID)
	if shares := b.core.places.of(nominated.UID, "gpu-1"); shares != nil {
		t.Errorf("it waits no more, and %v are remembered", shares)
	}
}

// fitsBeside says whether a pod fits beside a nominated one once others are removed, as a dry run asks it.
func fitsBeside(t *testing.T, b *bench, pod, nominated *v1.Pod, removed ...*v1.Pod) bool {
	t.Helper()
	ctx, trial := context.Background(), b.state.Clone()
	for _, one := range removed {
		b.RemovePod(ctx, trial, pod, infoOf(t, one), b.info())
	}
	beside := trial.Clone()
	b.AddPod(ctx, beside, pod, infoOf(t, nominated), b.info())
	return b.Filter(ctx, beside, pod, b.info()).IsSuccess()
}

func TestANominatedPodCountsWhereOthersAreRemoved(t *testing.T) {
	low := []*v1.Pod{boundPod("x", "GPU-0", 8), boundPod("y", "GPU-0", 8)}
	b := newBench(t, node("gpu-1", 1), low...)
	pod, nominated := podOf("a", 8), podOf("nominated", 8)
	priority(10)(nominated)
	b.begin(pod)
	fits := func(removed ...*v1.Pod) bool { return fitsBeside(t, b, pod, nominated, removed...) }
	if !fits(low...) {
		t.Error("it does not fit beside the nominated pod")
	}
	if fits(low[0]) || fits(low[1]) {
		t.Error("it gets the units of the nominated pod")
	}
}

// The nominated pod fits GPU-1 as it is. It takes nothing of what is freed, so that one pod has to go and not both.
func TestANominatedPodStaysWhereItFits(t *testing.T) {
	low := []*v1.Pod{boundPod("full", "GPU-0", 16), boundPod("half", "GPU-1", 8)}
	b := newBench(t, node("gpu-1", 2), low...)
	pod, nominated := podOf("a", 16), podOf("nominated", 4)
	priority(10)(nominated)
	b.begin(pod)
	fits := func(removed ...*v1.Pod) bool { return fitsBeside(t, b, pod, nominated, removed...) }
	if !fits(low...) || !fits(low[0]) {
		t.Error("both have to go")
	}
	if fits(low[1]) {
		t.Error("it gets the units of the nominated pod")
	}
}

// A pod that is bound gets no other cards than those that it is known to have.
func TestABoundPodThatIsPutBackIsNotNominated(t *testing.T) {
	ctx, low, other := context.Background(), boundPod("low", "GPU-0", 16), podOf("other", 16)
	other.Spec.NodeName = "gpu-1"
	b := newBench(t, node("gpu-1", 1), low, other)
	pod := podOf("a", 16)
	b.begin(pod)
	for _, one := range []*v1.Pod{low, other} {
		b.RemovePod(ctx, b.state, pod, infoOf(t, one), b.info())
	}
	b.AddPod(ctx, b.state, pod, infoOf(t, other), b.info())
	if !b.fits(pod) {
		t.Error("a pod without units has to go")
	}
}

func TestNobodyHasToGoWhereThatIsOfNoUse(t *testing.T) {
	ctx, low := context.Background(), boundPod("low", "GPU-0", 4)
	b := newBench(t, node("gpu-1", 1), low, boundPod("high", "GPU-0", 12))
	pod := podOf("a", 8)
	b.begin(pod)
	b.RemovePod(ctx, b.state, pod, infoOf(t, low), b.info())
	status := b.Filter(ctx, b.state, pod, b.info())
	if status.Code() != fwk.Unschedulable || status.Message() != "no pods that may be evicted would free enough" {
		t.Errorf("status: %v", status)
	}
}

func TestEventsHaveTheirNodeLookedAt(t *testing.T) {
	nominated, plain := podOf("nominated", 16), podOf("plain", 0)
	nominated.Status.NominatedNodeName = "gpu-1"
	plain.Spec.NodeName = "gpu-1"
	for _, test := range []struct {
		name string
		gone *v1.Pod
		want []string
	}{
		{"a pod with units", boundPod("x", "GPU-0", 16), []string{"gpu-1"}},
		{"a pod without units", plain, nil},
		{"it is nominated no more", nominated, []string{"gpu-1"}},
		{"it was nowhere", podOf("nowhere", 16), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, node("gpu-1", 1))
			var noted []string
			b.note = func(node string) { noted = append(noted, node) }
			hint, err := b.afterPodDeleted(klog.Background(), podOf("waits", 8), test.gone, nil)
			if err != nil || hint != fwk.QueueSkip || !slices.Equal(noted, test.want) {
				t.Errorf("hint %s, error %v, noted %v", hint, err, noted)
			}
		})
	}
	t.Run("the pod itself is nominated no more", func(t *testing.T) {
		b := newBench(t, node("gpu-1", 1))
		hint, err := b.afterPodDeleted(klog.Background(), podOf("nominated", 16), nominated, nil)
		if err != nil || hint != fwk.Queue {
			t.Errorf("hint %s, error %v", hint, err)
		}
	})
	t.Run("a new node", func(t *testing.T) {
		b := newBench(t, node("gpu-1", 1))
		var noted []string
		b.note = func(node string) { noted = append(noted, node) }
		added := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}}
		hint, err := b.afterNodeAdded(klog.Background(), podOf("waits", 8), nil, added)
		if err != nil || hint != fwk.QueueSkip || !slices.Equal(noted, []string{"gpu-1"}) {
			t.Errorf("hint %s, error %v, noted %v", hint, err, noted)
		}
	})
}

func TestOwnUpdatesAreHintsWhereThereIsRoomAgain(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	full, emptied := podOf("a", 4), podOf("a", 4)
	full.Annotations = map[string]string{"x": string(make([]byte, 256*1024))}
	if hint, _ := b.afterOwnUpdate(klog.Background(), full, full, emptied); hint != fwk.Queue {
		t.Errorf("room again: %s", hint)
	}
	if hint, _ := b.afterOwnUpdate(klog.Background(), full, full, full); hint != fwk.QueueSkip {
		t.Errorf("as before: %s", hint)
	}
	emptied.UID = types.UID("another")
	if hint, _ := b.afterOwnUpdate(klog.Background(), full, full, emptied); hint != fwk.QueueSkip {
		t.Errorf("another pod: %s", hint)
	}
}

func TestBudgetsProtectPods(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &intstr.IntOrString{IntVal: 1},
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		},
		Status: policyv1.PodDisruptionBudgetStatus{
			DisruptionsAllowed: 1, DisruptedPods: map[string]metav1.Time{"counted": metav1.Now()},
		},
	}
	informer := b.handle.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Informer()
	if err := informer.GetStore().Add(budget); err != nil {
		t.Fatal(err)
	}
	labelled := map[string]string{"app": "x"}
	pods, chosen := map[string]*v1.Pod{}, []victims.Pod(nil)
	for _, name := range []string{"other", "counted", "first", "second"} {
		pod := podOf(name, 4)
		if name != "other" {
			pod.Labels = labelled
		}
		pods[name], chosen = pod, append(chosen, victims.Pod{UID: name})
	}
	if kept := b.protector(pods)(chosen); len(kept) != 1 || !kept["second"] {
		t.Errorf("protected: %v", kept)
	}
}

func TestNothingIsPlacedBeforeAllIsRead(t *testing.T) {
	b := newBench(t, node("gpu-1", 1))
	synced, refusal, asked := false, errors.New("another one binds pods"), 0
	b.synced = append(b.synced, func() bool { return synced })
	b.hold = func(context.Context) (uint64, error) { asked++; return 7, refusal }
	if code := b.begin(podOf("a", 4)); code != fwk.Error || asked != 0 {
		t.Errorf("PreFilter says %s, asked %d times", code, asked)
	}
	if code := b.begin(podOf("plain", 0)); code != fwk.Skip {
		t.Errorf("PreFilter says %s of a plain pod", code)
	}
	synced = true
	if code := b.begin(podOf("a", 4)); code != fwk.Error || asked != 1 {
		t.Errorf("PreFilter says %s, asked %d times", code, asked)
	}
	if code := b.begin(podOf("plain", 0)); code != fwk.Skip || asked != 1 {
		t.Errorf("PreFilter says %s of a plain pod, asked %d times", code, asked)
	}
	refusal = nil
	if code := b.begin(podOf("a", 4)); code != fwk.Success || stateOf(b.state).holding != 7 {
		t.Errorf("PreFilter says %s", code)
	}
}

// The refusal may be out of date: another scheduler may have placed pods since.
func TestAPodThatWasRefusedWhileTheLeaseGotLostIsTriedOnceItIsHeld(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-x", 0, 16))
	pod := podOf("a", 4)
	b.begin(pod)
	b.hold = func(context.Context) (uint64, error) { return 0, errors.New("another one binds pods") }
	b.PostFilter(context.Background(), b.state, pod, framework.NewDefaultNodeToStatus())
	if pods := b.postponed.take(); len(pods) != 1 {
		t.Errorf("postponed: %v", pods)
	}
}

func TestAPodIsTriedAlsoIfTheLeaseIsTakenRightAfterItsRefusal(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-x", 0, 16))
	pod, tried := podOf("a", 4), []*v1.Pod(nil)
	b.begin(pod)
	b.hold = func(context.Context) (uint64, error) {
		tried = b.postponed.take() // as when the Lease is taken
		return 0, errors.New("another one binds pods")
	}
	b.PostFilter(context.Background(), b.state, pod, framework.NewDefaultNodeToStatus())
	if len(tried) != 1 {
		t.Errorf("tried: %v", tried)
	}
}

func TestAPodThatWasRefusedIsNotTriedOnceMoreWhenTheLeaseIsTaken(t *testing.T) {
	b := newBench(t, node("gpu-1", 1, "uid-x", 0, 16))
	pod := podOf("a", 4)
	b.begin(pod)
	b.PostFilter(context.Background(), b.state, pod, framework.NewDefaultNodeToStatus())
	if pods := b.postponed.take(); len(pods) > 0 {
		t.Errorf("postponed: %v", pods)
	}
}
