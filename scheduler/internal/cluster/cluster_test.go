package cluster

import (
	"fmt"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

var memory = cards.Resource{Name: "gpushare.io/memory", Class: cards.Memory}

// world is a node gpu-1 with one card of 16 units, and a clock.
type world struct {
	*Cluster
	now   time.Time
	freed []string
}

func newWorld() *world {
	w := &world{now: time.Unix(1000, 0)}
	w.Cluster = New(func() time.Time { return w.now }, func(node string) { w.freed = append(w.freed, node) })
	w.report()
	return w
}

// report says which pods the kubelet has given 8 units each.
func (w *world) report(uids ...string) {
	card := sharenode.Card{UUID: "GPU-0", Units: 16, Allocated: int64(8 * len(uids)), IsHealthy: true}
	for _, uid := range uids {
		card.Holders = append(card.Holders, sharenode.Holder{UID: uid, Units: 8, Least: 8})
	}
	w.SetShareNode(&sharenode.Node{Name: "gpu-1", Cards: []sharenode.Card{card}, Resources: []cards.Resource{memory}})
}

func asking(units string) *Asked {
	limits := v1.ResourceList{v1.ResourceName(memory.Name): resource.MustParse(units)}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{
		Name: "main", Resources: v1.ResourceRequirements{Limits: limits},
	}}}}
	return Ask(pod, []cards.Resource{memory})
}

// bound returns a pod on gpu-1, with an annotation that gives it units where there are some.
func bound(uid string, units int) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), ResourceVersion: "1"},
		Spec:       v1.PodSpec{NodeName: "gpu-1"},
	}
	if units > 0 {
		pod.Annotations = map[string]string{allocation.Annotation: fmt.Sprintf(`{"node":"gpu-1","uid":"%s",`+
			`"at":"2026-11-21T10:00:00Z","unit":"1Gi","containers":{"main":{"GPU-0":%d}}}`, uid, units)}
	}
	return pod
}

func nodeInfo(pods ...*v1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gpu-1"}})
	return info
}

func (w *world) free(t *testing.T, info fwk.NodeInfo) int {
	t.Helper()
	return greatest(w.Room(info))
}

// greatest returns the most units that fit.
func greatest(room *Room) int {
	for units := 16; units > 0; units-- {
		if room.Fits(asking(fmt.Sprint(units))) {
			return units
		}
	}
	return 0
}

func TestRoomIsWorkedOutFromTheSchedulersView(t *testing.T) {
	w := newWorld()
	if free := w.free(t, nodeInfo()); free != 16 {
		t.Errorf("an empty node has %d", free)
	}
	if free := w.free(t, nodeInfo(bound("a", 4), bound("b", 2))); free != 10 {
		t.Errorf("with two pods: %d", free)
	}
	other := nodeInfo()
	other.Node().Name = "cpu-1"
	if free := w.free(t, other); free != 0 {
		t.Errorf("a node that shares nothing has %d", free)
	}
}

func TestAnAssumedPodCountsWithoutItsAnnotation(t *testing.T) {
	w := newWorld()
	info, assumed := nodeInfo(), bound("a", 0)
	if err := w.Reserve(&ledger.Holder{UID: "a", Node: "gpu-1", Cards: []cards.Share{{Card: "GPU-0", Units: 4}}}); err != nil {
		t.Fatal(err)
	}
	podInfo, _ := framework.NewPodInfo(assumed)
	info.AddPodInfo(podInfo)
	if free := w.free(t, info); free != 12 {
		t.Errorf("assumed: %d", free)
	}
	w.SetPod(bound("a", 4))
	if free := w.free(t, nodeInfo(bound("a", 4))); free != 12 {
		t.Errorf("bound: %d", free)
	}
	if err := info.RemovePod(klog.Background(), assumed); err != nil {
		t.Fatal(err)
	}
	w.Release("a")
	if free := w.free(t, info); free != 12 {
		t.Errorf("released after it was bound: %d", free)
	}
}

func TestReleasedUnitsAreFree(t *testing.T) {
	w := newWorld()
	_ = w.Reserve(&ledger.Holder{UID: "a", Node: "gpu-1", Cards: []cards.Share{{Card: "GPU-0", Units: 4}}})
	w.Release("a")
	if free := w.free(t, nodeInfo()); free != 16 {
		t.Errorf("free: %d", free)
	}
}

// volcanic returns a pod on gpu-1 for which Volcano chose the card, and another annotation of ours names gpu-2.
func volcanic(uid string, isOurs bool) *v1.Pod {
	pod := bound(uid, 0)
	pod.Annotations = map[string]string{"volcano.sh/gpu-index": "0"}
	limits := v1.ResourceList{"volcano.sh/gpu-memory": resource.MustParse("3")}
	pod.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Limits: limits}}}
	if isOurs {
		pod.Annotations[allocation.Annotation] = elsewhere(uid)
	}
	return pod
}

func elsewhere(uid string) string {
	return fmt.Sprintf(`{"node":"gpu-2","uid":"%s","at":"2026-11-21T10:00:00Z","unit":"1Gi",`+
		`"containers":{"main":{"GPU-9":4}}}`, uid)
}

// inVolcanosWords has gpu-1 serve its memory by Volcano's name.
func (w *world) inVolcanosWords(t *testing.T) {
	t.Helper()
	node, err := sharenode.Read([]byte(`{"metadata":{"name":"gpu-1"},"spec":{"mode":"Memory","memoryUnit":"1Gi",
		"dialect":"volcano.sh"},"status":{"memoryUnit":"1Gi","cards":[{"uuid":"GPU-0","units":16}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	w.SetShareNode(node)
}

func (w *world) units(t *testing.T, info fwk.NodeInfo) int64 {
	t.Helper()
	return w.Room(info).node.Cards(cards.Memory)[0].Free()
}

func TestARoomIsWorkedOutAnewWhenAPodOfItComesToCountElsewhere(t *testing.T) {
	w := newWorld()
	w.inVolcanosWords(t)
	info := nodeInfo(volcanic("a", false))
	if free := w.units(t, info); free != 13 {
		t.Errorf("by Volcano's words: %d", free)
	}
	w.Adopt("a", map[string]string{allocation.Annotation: elsewhere("a")})
	if free := w.units(t, info); free != 16 {
		t.Errorf("known to be on another node: %d", free)
	}
}

func TestARoomIsWorkedOutAnewWhenAPodOfItCountsElsewhereNoMore(t *testing.T) {
	w := newWorld()
	w.inVolcanosWords(t)
	w.SetPod(volcanic("a", true))
	info := nodeInfo(volcanic("a", false))
	if free := w.units(t, info); free != 16 {
		t.Errorf("known to be on another node: %d", free)
	}
	w.PodGone("a")
	if free := w.units(t, info); free != 13 {
		t.Errorf("by Volcano's words: %d", free)
	}
}

func TestNothingIsKeptOfNodesThatAreGone(t *testing.T) {
	w := newWorld()
	w.SetPod(bound("a", 8))
	w.free(t, nodeInfo(bound("a", 8)))
	greatest(w.Known("gpu-1"))
	w.DropShareNode("gpu-1")
	w.free(t, nodeInfo(bound("a", 8))) // its node is there still, and so are its units
	w.PodGone("a")
	w.now = w.now.Add(ledger.UnreleasedTime)
	w.Expire()
	w.NodeReturned("gpu-1")
	greatest(w.Known("gpu-1"))
	if len(w.nodes)+len(w.pods) > 0 {
		t.Errorf("%d nodes and %d pods are kept", len(w.nodes), len(w.pods))
	}
}

// Before we have forgotten a node that is gone it may be there again.
func TestANodeThatIsBackIsWorkedOutAnew(t *testing.T) {
	w, info := newWorld(), nodeInfo()
	number := w.Place("gpu-1").number
	w.Room(info)
	w.book.DropShareNode("gpu-1")
	if free := w.free(t, info); free != 0 {
		t.Errorf("gone: free %d", free)
	}
	for _, units := range []int{4, 3} {
		card := sharenode.Card{UUID: "GPU-0", Units: int64(units), IsHealthy: true}
		w.book.SetShareNode(&sharenode.Node{
			Name: "gpu-1", Cards: []sharenode.Card{card}, Resources: []cards.Resource{memory},
		})
		if free, known := w.free(t, info), greatest(w.Known("gpu-1")); free != units || known != units {
			t.Errorf("back with %d: free %d, known %d", units, free, known)
		}
	}
	if now := w.Place("gpu-1").number; now != number {
		t.Errorf("number %d, then %d", number, now)
	}
}

func TestNothingIsKeptOfPodsThatSpeakOfNoUnits(t *testing.T) {
	w := newWorld()
	ordinary, shared := bound("ordinary", 0), bound("shared", 8)
	ordinary.Annotations = map[string]string{"prometheus.io/scrape": "true"}
	for range 2 {
		w.SetPod(ordinary)
		w.SetPod(shared)
	}
	if len(w.pods) != 1 {
		t.Errorf("%d pods are kept", len(w.pods))
	}
	shared.Annotations = ordinary.Annotations
	w.SetPod(shared)
	w.SetPod(shared)
	if free := w.free(t, nodeInfo(ordinary, shared)); free != 8 {
		t.Errorf("its annotation is taken away: free %d", free)
	}
	w.PodGone(shared.UID)
	if len(w.pods) > 0 {
		t.Errorf("it is gone: %d pods are kept", len(w.pods))
	}
}

func TestUnitsAreFreeWhenTheKubeletHasReleasedThem(t *testing.T) {
	w := newWorld()
	w.SetPod(bound("a", 8))
	w.report("a")
	w.PodGone("a")
	if free := w.free(t, nodeInfo()); free != 8 {
		t.Errorf("gone, and the kubelet has the units still: %d", free)
	}
	w.report()
	if free := w.free(t, nodeInfo()); free != 16 {
		t.Errorf("released: %d", free)
	}
}

// Who waits for its units may be placed elsewhere.
func TestANodeIsLookedAtOnceAPodThatIsGoneIsExpectedNoMore(t *testing.T) {
	w := newWorld()
	w.SetPod(bound("a", 8))
	w.report("a")
	w.PodGone("a")
	asked := asking("16")
	for _, want := range []bool{true, false} {
		w.freed = nil
		w.Expire()
		if will := w.WillFit("gpu-1", asked, 0); will != want || (len(w.freed) > 0) == want {
			t.Errorf("it will fit: %t, freed %v", will, w.freed)
		}
		w.now = w.now.Add(ledger.GoneTime)
	}
	w.freed = nil
	if w.Expire(); len(w.freed) > 0 {
		t.Errorf("again: freed %v", w.freed)
	}
}

func TestUnitsOfAPodThatNobodyReportedAreFreeInTime(t *testing.T) {
	w := newWorld()
	w.SetPod(bound("a", 8))
	w.PodGone("a")
	w.freed = nil
	w.Expire()
	if free := w.free(t, nodeInfo()); free != 8 || len(w.freed) > 0 {
		t.Errorf("at once: %d, freed %v", free, w.freed)
	}
	w.now = w.now.Add(ledger.UnreleasedTime)
	w.Expire()
	if free := w.free(t, nodeInfo()); free != 16 || len(w.freed) != 1 {
		t.Errorf("in time: %d, freed %v", free, w.freed)
	}
}

func TestKnownIsWhatWatchesShow(t *testing.T) {
	w := newWorld()
	w.SetPod(bound("a", 8))
	if free := greatest(w.Known("gpu-1")); free != 8 {
		t.Errorf("free: %d", free)
	}
	if w.Known("cpu-1").Fits(asking("1")) {
		t.Error("a node that shares nothing fits")
	}
}

func TestRoomIsKeptUntilSomethingChanges(t *testing.T) {
	w := newWorld()
	info := nodeInfo(bound("a", 4))
	first := w.Room(info)
	if w.Room(info) != first {
		t.Error("worked out again")
	}
	w.report()
	second := w.Room(info)
	if second == first {
		t.Error("a change of the GPUShareNode is not seen")
	}
	podInfo, _ := framework.NewPodInfo(bound("b", 4))
	info.AddPodInfo(podInfo)
	if w.Room(info) == second {
		t.Error("a change of the node's pods is not seen")
	}
}

func TestARepairedAnnotationFreesWhatItSaidBefore(t *testing.T) {
	w := newWorld()
	w.SetPod(bound("a", 8))
	w.freed = nil
	w.SetPod(bound("a", 8))
	if len(w.freed) > 0 {
		t.Errorf("nothing has changed: %v", w.freed)
	}
	repaired := bound("a", 4)
	repaired.ResourceVersion = "2"
	w.SetPod(repaired)
	if len(w.freed) != 1 || greatest(w.Known("gpu-1")) != 12 {
		t.Errorf("freed %v", w.freed)
	}
}

func TestAdoptedPodsCountUntilItIsKnownThatTheyAreGone(t *testing.T) {
	w := newWorld()
	for _, uid := range []string{"shown", "late", "gone"} {
		w.Adopt(types.UID(uid), bound(uid, 4).Annotations)
	}
	if free := w.free(t, nodeInfo()); free != 4 {
		t.Errorf("adopted: %d", free)
	}
	w.SetPod(bound("shown", 4))
	if unseen := w.Unseen(); len(unseen) > 0 {
		t.Errorf("at once: %v", unseen)
	}
	w.now = w.now.Add(unseenTime)
	w.Expire()
	unseen := w.Unseen()
	if len(unseen) != 2 {
		t.Errorf("unseen: %v", unseen)
	}
	w.Confirm(unseen, map[types.UID]bool{"late": true})
	w.now = w.now.Add(ledger.UnreleasedTime)
	w.Expire()
	if free := w.free(t, nodeInfo(bound("shown", 4))); free != 8 {
		t.Errorf("the watch is late: %d", free)
	}
	if unseen := w.Unseen(); len(unseen) > 0 {
		t.Errorf("asked after at once again: %v", unseen)
	}
}

func TestAPodThatAnotherOneHasBoundCountsThoughWeHadReservedIt(t *testing.T) {
	w := newWorld()
	_ = w.Reserve(&ledger.Holder{UID: "a", Node: "gpu-1", Cards: []cards.Share{{Card: "GPU-0", Units: 4}}})
	w.Adopt("a", bound("a", 6).Annotations)
	w.Release("a")
	if free := w.free(t, nodeInfo()); free != 10 {
		t.Errorf("free: %d", free)
	}
}

// A watch may show a pod in the same moment as a takeover reads it, and that it is gone.
func TestAWatchIsBelievedWhileATakeoverReads(t *testing.T) {
	w := newWorld()
	w.Cluster.freed = func(string) {}
	for number := range 5000 {
		read, shown := bound(fmt.Sprint(number), 4), bound(fmt.Sprint(number), 8)
		var both sync.WaitGroup
		both.Go(func() { w.Adopt(read.UID, read.Annotations) })
		both.Go(func() { w.SetPod(shown) })
		both.Wait()
		if units := w.Holder(shown.UID).Cards[0].Units; units != 8 {
			t.Fatalf("pod %d has %d units by what was read", number, units)
		}
		both.Go(func() { w.Adopt(read.UID, read.Annotations) })
		both.Go(func() { w.PodGone(shown.UID) })
		both.Wait()
		if _, isAskedAfter := w.adopted[read.UID]; w.Holder(read.UID) != nil && !isAskedAfter {
			t.Fatalf("pod %d is gone, and counts for ever", number)
		}
	}
}

func TestAPodThatIsShownWhileItIsAskedAfterCounts(t *testing.T) {
	w := newWorld()
	w.Adopt("a", bound("a", 4).Annotations)
	w.now = w.now.Add(unseenTime)
	unseen := w.Unseen()
	w.SetPod(bound("a", 4))
	w.Confirm(unseen, nil)
	w.now = w.now.Add(ledger.UnreleasedTime)
	w.Expire()
	if free := w.free(t, nodeInfo(bound("a", 4))); free != 12 {
		t.Errorf("free: %d", free)
	}
}

func TestAnAdoptedPodIsNotGone(t *testing.T) {
	w := newWorld()
	w.Adopt("a", bound("a", 4).Annotations)
	if gone := w.Gone(nodeInfo()); len(gone) > 0 {
		t.Errorf("gone: %v", gone)
	}
	w.SetPod(bound("a", 4))
	if gone := w.Gone(nodeInfo()); len(gone) != 1 {
		t.Errorf("the watch has shown it, and the scheduler does no more; gone: %v", gone)
	}
}

func TestAnAdoptedPodWhoseAnnotationsAreTakenAwayCounts(t *testing.T) {
	w := newWorld()
	w.Adopt("a", bound("a", 4).Annotations)
	w.SetPod(bound("a", 0))
	w.now = w.now.Add(unseenTime)
	w.Confirm(w.Unseen(), nil)
	w.now = w.now.Add(ledger.UnreleasedTime)
	w.Expire()
	if free := w.free(t, nodeInfo(bound("a", 0))); free != 12 {
		t.Errorf("free: %d", free)
	}
}

func TestSharedNamesAreOursWhileANodeServesThem(t *testing.T) {
	w := newWorld()
	has := func() bool {
		for _, resource := range w.Resources() {
			if resource.Name == "nvidia.com/gpu" {
				return true
			}
		}
		return false
	}
	if has() {
		t.Error("ours without a node")
	}
	w.SetShareNode(&sharenode.Node{Name: "t", Resources: []cards.Resource{{Name: "nvidia.com/gpu", Class: cards.Whole}}})
	if !has() {
		t.Error("not ours")
	}
	w.DropShareNode("t")
	if has() {
		t.Error("ours when the node is gone")
	}
}
