package cluster

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpushare.io/scheduler/internal/ledger"
)

func TestARequestFitsInPlaceOfThoseThatMayBeEvicted(t *testing.T) {
	w, yes, low := newWorld(), true, int32(-5)
	w.report("a", "b")
	share := *w.ShareNode("gpu-1")
	share.Preempts = true
	w.SetShareNode(&share)
	for _, test := range []struct {
		name   string
		change func(*v1.Pod)
		want   bool
	}{
		{"of one that is as important", func(*v1.Pod) {}, false},
		{"of a less important one", func(pod *v1.Pod) { pod.Spec.Priority = &low }, true},
		{"of one that would come back", func(pod *v1.Pod) {
			pod.Spec.Priority = &low
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: &yes}}
		}, false},
	} {
		changed := bound("a", 8)
		test.change(changed)
		w.SetPod(changed)
		w.SetPod(bound("b", 8))
		from, helps := w.HelpsFrom("gpu-1", asking("8"), 0)
		if helps != test.want || helps && from != low+1 {
			t.Errorf("%s: %v from %d", test.name, helps, from)
		}
		if _, helps := w.HelpsFrom("gpu-1", asking("16"), 0); helps {
			t.Errorf("%s: b is as important", test.name)
		}
		if from, helps := w.HelpsFrom("gpu-1", asking("16"), 10); helps != (test.name != "of one that would come back") || helps && from != 1 {
			t.Errorf("%s: both: %v from %d", test.name, helps, from)
		}
	}
}

// It has its units until it is gone, and may be evicted as before.
func TestAPodWhoseAnnotationIsTakenAwayMayBeEvicted(t *testing.T) {
	w, low := newWorld(), int32(-5)
	w.report("a")
	share := *w.ShareNode("gpu-1")
	share.Preempts = true
	w.SetShareNode(&share)
	pod := bound("a", 8)
	pod.Spec.Priority = &low
	w.SetPod(pod)
	for _, annotations := range []map[string]string{{"prometheus.io/scrape": "true"}, nil} {
		changed := pod.DeepCopy()
		changed.Annotations = annotations
		w.SetPod(changed)
		if _, helps := w.HelpsFrom("gpu-1", asking("16"), 0); !helps {
			t.Errorf("%v: evictions do not help", annotations)
		}
	}
}

func TestARequestWillFitOnceAllIsReleased(t *testing.T) {
	w := newWorld()
	w.report("a", "b")
	w.SetPod(bound("a", 8))
	w.SetPod(bound("b", 8))
	if w.WillFit("gpu-1", asking("8"), 1) {
		t.Error("nobody goes")
	}
	now, ending := metav1.Now(), bound("a", 8)
	ending.DeletionTimestamp = &now
	w.SetPod(ending)
	if !w.WillFit("gpu-1", asking("8"), 1) || w.WillFit("gpu-1", asking("16"), 1) {
		t.Error("a is being deleted")
	}
	if w.WillFit("gpu-1", asking("8"), 0) {
		t.Error("a would not be evicted for it")
	}
	w.PodGone("b")
	if !w.WillFit("gpu-1", asking("16"), 1) {
		t.Error("b is gone, and the kubelet has its units still")
	}
	w.DropShareNode("gpu-1")
	if w.WillFit("gpu-1", asking("8"), 1) {
		t.Error("the node is gone")
	}
}

// Where nobody has to go beside those that are gone, evictions begin to help once their units are not expected back any more.
func TestEvictionsHelpOnceWhoIsGoneMakesNoRoom(t *testing.T) {
	w, low := newWorld(), int32(-5)
	w.report("gone", "low")
	share := *w.ShareNode("gpu-1")
	share.Preempts = true
	w.SetShareNode(&share)
	w.SetPod(bound("gone", 8))
	pod := bound("low", 8)
	pod.Spec.Priority = &low
	w.SetPod(pod)
	w.PodGone("gone")
	if _, helps := w.HelpsFrom("gpu-1", asking("8"), 0); helps {
		t.Error("gone makes room")
	}
	if _, helps := w.HelpsFrom("gpu-1", asking("16"), 0); !helps {
		t.Error("low makes room beside gone")
	}
	w.now = w.now.Add(ledger.GoneTime)
	w.Expire()
	if _, helps := w.HelpsFrom("gpu-1", asking("8"), 0); !helps {
		t.Error("gone makes no room any more")
	}
}
