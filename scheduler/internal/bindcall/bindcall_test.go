package bindcall

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/binding"
)

const given = `{"node":"gpu-1","uid":"u-1","at":"2026-11-21T10:00:00Z","unit":"1Gi","containers":{}}`

var pods = schema.GroupResource{Resource: "pods"}

// world is an API server with one pod, and a clock that goes only while somebody sleeps.
type world struct {
	client *fake.Clientset
	now    time.Time
	// bindings are those that were sent.
	bindings []*v1.Binding
	// onBind decides of the nth Binding, from 0.
	onBind func(w *world, number int) error
}

func newWorld(t *testing.T, onBind func(w *world, number int) error) *world {
	t.Helper()
	w := &world{client: fake.NewClientset(pod("1")), now: time.Unix(0, 0), onBind: onBind}
	w.client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "binding" {
			return false, nil, nil
		}
		binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		w.bindings = append(w.bindings, binding)
		return true, binding, w.onBind(w, len(w.bindings)-1)
	})
	return w
}

func pod(version string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "u-1", ResourceVersion: version}}
}

func (w *world) change(change func(*v1.Pod)) {
	changed := pod("2")
	change(changed)
	_ = w.client.Tracker().Update(v1.SchemeGroupVersion.WithResource("pods"), changed, "default")
}

func (w *world) write() error {
	clock := Clock{
		Now:   func() time.Time { return w.now },
		Sleep: func(_ context.Context, duration time.Duration) { w.now = w.now.Add(duration) },
	}
	written := binding.Binding{Annotations: map[string]string{allocation.Annotation: given}, Room: 200}
	return Write(context.Background(), w.client.CoreV1(), clock, pod("1"), "gpu-1", written)
}

func (w *world) bind(node string) {
	w.change(func(pod *v1.Pod) {
		pod.Spec.NodeName = node
		pod.Annotations = map[string]string{allocation.Annotation: strings.Replace(given, "gpu-1", node, 1)}
	})
}

var errBroken = errors.New("connection reset")

func TestWriteSendsNodeAndCardInOneObject(t *testing.T) {
	w := newWorld(t, func(*world, int) error { return nil })
	if err := w.write(); err != nil {
		t.Fatal(err)
	}
	sent := w.bindings[0]
	if sent.UID != "u-1" || sent.ResourceVersion != "1" || sent.Annotations[allocation.Annotation] != given {
		t.Errorf("sent: %+v", sent.ObjectMeta)
	}
	if sent.Target != (v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "gpu-1"}) {
		t.Errorf("target: %+v", sent.Target)
	}
}

func TestOutcomes(t *testing.T) {
	conflict := apierrors.NewConflict(pods, "a", errors.New("the object has been modified"))
	for _, test := range []struct {
		name   string
		onBind func(w *world, number int) error
		// sent is how many Bindings are sent, at least.
		sent int
		// want is a part of the error; empty for a pod that is bound.
		want        string
		boundBefore bool
	}{
		{"broken, and bound", func(w *world, _ int) error { w.bind("gpu-1"); return errBroken }, 1, "", false},
		{"broken once", func(_ *world, number int) error {
			if number == 0 {
				return errBroken
			}
			return nil
		}, 2, "", false},
		{"changed meanwhile", func(w *world, number int) error {
			if number == 0 {
				w.change(func(*v1.Pod) {})
				return conflict
			}
			return nil
		}, 2, "", false},
		{"bound elsewhere", func(w *world, _ int) error { w.bind("gpu-2"); return conflict }, 1,
			"bound by somebody else", false},
		{"refused", func(*world, int) error { return apierrors.NewForbidden(pods, "a", errors.New("no")) }, 1,
			"forbidden", false},
		{"gone after an unclear failure", func(w *world, _ int) error {
			_ = w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", "a")
			return errBroken
		}, 1, "gone", true},
		{"never", func(*world, int) error { return errBroken }, 3, "not bound", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.onBind)
			err := w.write()
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error: %v", err)
			}
			if errors.Is(err, ErrBoundBefore) != test.boundBefore {
				t.Errorf("bound before: %v", err)
			}
			if len(w.bindings) < test.sent {
				t.Errorf("%d Bindings were sent", len(w.bindings))
			}
		})
	}
}

func TestAnUnclearFailureIsAskedAfterUntilItIsCertain(t *testing.T) {
	w := newWorld(t, func(*world, int) error { return errBroken })
	begin := w.now
	if err := w.write(); err == nil {
		t.Fatal("bound")
	}
	if waited := w.now.Sub(begin); waited < uncertainTime {
		t.Errorf("gave up after %s", waited)
	}
}

func TestALaterVersionIsSent(t *testing.T) {
	conflict := apierrors.NewConflict(pods, "a", errors.New("the object has been modified"))
	w := newWorld(t, func(w *world, number int) error {
		if number == 0 {
			w.change(func(*v1.Pod) {})
			return conflict
		}
		return nil
	})
	if err := w.write(); err != nil || w.bindings[1].ResourceVersion != "2" {
		t.Errorf("error %v, Bindings %v", err, w.bindings)
	}
}

func TestAPodWithoutRoomForAnnotationsIsNotBound(t *testing.T) {
	w := newWorld(t, func(*world, int) error { return nil })
	w.client.ClearActions()
	full := pod("1")
	full.Annotations = map[string]string{"x": strings.Repeat("y", 256*1024)}
	clock := Clock{func() time.Time { return w.now }, func(context.Context, time.Duration) {}}
	err := Write(context.Background(), w.client.CoreV1(), clock, full, "gpu-1", binding.Binding{Room: 200})
	if err == nil || len(w.bindings) > 0 {
		t.Errorf("error %v, %d Bindings", err, len(w.bindings))
	}
}
