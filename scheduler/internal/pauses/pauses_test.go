package pauses

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"gpushare.io/scheduler/internal/cards"
)

var memory = []cards.Resource{{Name: "gpushare.io/memory", Class: cards.Memory}}

// world is a cluster whose pods are rejected for a reason.
type world struct {
	*Pauses
	now    time.Time
	reason string
	// read is what reading a pod answers.
	read    error
	changed chan string
	// reading is closed once pods can be read.
	reading chan struct{}
}

func newWorld() *world {
	w := &world{now: time.Unix(0, 0), reason: "OutOfgpushare.io/memory", changed: make(chan string, 10), reading: make(chan struct{})}
	close(w.reading)
	w.Pauses = New(Cluster{
		Now: func() time.Time { return w.now },
		Read: func(_ context.Context, _, name string) (*v1.Pod, error) {
			<-w.reading
			return pod(name), w.read
		},
		Rejection: func(string, *v1.Pod) string { return w.reason },
		Changed:   func(node string) { w.changed <- node },
	})
	return w
}

func pod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

// reject binds a pod that is gone at once.
func (w *world) reject(t *testing.T, name string) {
	t.Helper()
	w.Bound(pod(name), "gpu-1")
	w.Gone(types.UID(name), false)
	select {
	case <-w.changed:
	case <-time.After(time.Minute):
		t.Fatal("no pause")
	}
}

func TestPausesAreLongerEachTime(t *testing.T) {
	w := newWorld()
	for _, want := range []string{"5", "10", "20", "40", "60", "60"} {
		w.reject(t, "a")
		if reason := w.Reason("gpu-1"); !strings.HasPrefix(reason, "node takes no pods for "+want+" s: its kubelet rejected"+
			" one (OutOfgpushare.io/memory)") {
			t.Fatalf("reason: %s", reason)
		}
		if w.Reason("gpu-2") != "" {
			t.Error("another node is paused")
		}
		seconds, _ := time.ParseDuration(want + "s")
		w.now = w.now.Add(seconds - time.Millisecond)
		w.Tick()
		if w.Reason("gpu-1") == "" {
			t.Error("it has ended too early")
		}
		w.now = w.now.Add(time.Millisecond)
		w.Tick()
		if <-w.changed != "gpu-1" || w.Reason("gpu-1") != "" {
			t.Error("it has not ended")
		}
	}
}

func TestAPodThatStaysEndsTheRow(t *testing.T) {
	w := newWorld()
	w.reject(t, "a")
	w.now = w.now.Add(firstPause)
	w.Tick()
	<-w.changed
	w.Bound(pod("stays"), "gpu-1")
	w.now = w.now.Add(rightAfter + 1)
	w.Tick()
	w.reject(t, "b")
	if reason := w.Reason("gpu-1"); !strings.Contains(reason, "for 5 s") {
		t.Errorf("reason: %s", reason)
	}
}

func TestAReportEndsAPause(t *testing.T) {
	w := newWorld()
	w.reject(t, "a")
	w.Reported("gpu-1")
	if <-w.changed != "gpu-1" || w.Reason("gpu-1") != "" {
		t.Error("paused")
	}
}

func TestNoPause(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(w *world)
	}{
		{"it was reported", func(w *world) { w.Bound(pod("a"), "gpu-1"); w.Gone("a", true) }},
		{"it was not bound by us", func(w *world) { w.Gone("a", false) }},
		{"it ended later", func(w *world) {
			w.Bound(pod("a"), "gpu-1")
			w.now = w.now.Add(rightAfter + 1)
			w.Gone("a", false)
		}},
		{"it ended by itself", func(w *world) { w.reason = ""; w.Bound(pod("a"), "gpu-1"); w.Gone("a", false) }},
		{"it cannot be read", func(w *world) {
			w.read = errors.New("no")
			w.Bound(pod("a"), "gpu-1")
			w.Gone("a", false)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			test.do(w)
			w.wait()
			if reason := w.Reason("gpu-1"); reason != "" {
				t.Errorf("reason: %s", reason)
			}
		})
	}
}

// wait waits until no pod is read.
func (w *world) wait() {
	for reading := true; reading; time.Sleep(time.Millisecond) {
		w.mutex.Lock()
		reading = len(w.reads) > 0
		w.mutex.Unlock()
	}
}

func TestABurstOfRejectionsIsOne(t *testing.T) {
	w := newWorld()
	w.reading = make(chan struct{})
	for _, name := range []string{"a", "b", "c", "d"} {
		w.Bound(pod(name), "gpu-1")
		w.Gone(types.UID(name), false)
	}
	close(w.reading)
	w.wait()
	if reason := w.Reason("gpu-1"); !strings.Contains(reason, "for 5 s") {
		t.Errorf("reason: %s", reason)
	}
}

func TestAReportCountsMoreThanARejectionBeforeIt(t *testing.T) {
	w := newWorld()
	w.reading = make(chan struct{})
	w.Bound(pod("a"), "gpu-1")
	w.Gone("a", false)
	w.Reported("gpu-1")
	close(w.reading)
	w.wait()
	if reason := w.Reason("gpu-1"); reason != "" {
		t.Errorf("reason: %s", reason)
	}
}

func TestRejection(t *testing.T) {
	asking := func(names ...string) v1.PodSpec {
		limits := v1.ResourceList{}
		for _, name := range names {
			limits[v1.ResourceName(name)] = resource.MustParse("1")
		}
		return v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Limits: limits}}}}
	}
	ours := asking("gpushare.io/memory", "cpu")
	failed := func(reason, message string) v1.PodStatus {
		return v1.PodStatus{Phase: v1.PodFailed, Reason: reason, Message: message}
	}
	for _, test := range []struct {
		name   string
		spec   v1.PodSpec
		status v1.PodStatus
		want   string
	}{
		{"too few", ours, failed("OutOfgpushare.io/memory", ""), "OutOfgpushare.io/memory"},
		{"too little CPU", ours, failed("OutOfcpu", ""), ""},
		{"named", ours, failed(unexpected, "requested number of devices unavailable for gpushare.io/memory. Requested"),
			unexpected},
		{"a longer name", ours, failed(unexpected, "unavailable for gpushare.io/memory-x. Requested"), ""},
		{"a longer domain", ours, failed(unexpected, "unavailable for my.gpushare.io/memory. Requested"), ""},
		{"the call failed", ours, failed(unexpected, "Allocate failed due to rpc error: code"), unexpected},
		{"the call of somebody failed", asking("gpushare.io/memory", "x.io/nic"), failed(unexpected, "rpc error: code"), ""},
		{"it ended", ours, v1.PodStatus{Phase: v1.PodSucceeded, Reason: unexpected, Message: "gpushare.io/memory"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: test.spec, Status: test.status}
			if got := Rejection(pod, memory, memory); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
