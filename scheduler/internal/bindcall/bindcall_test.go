package bindcall

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
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
	// refusal is why no Binding may be sent.
	refusal error
	// onRead is called before a pod is read.
	onRead func(w *world)
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
	return w.writer().Write(context.Background(), pod("1"), "gpu-1", written)
}

var written = binding.Binding{Annotations: map[string]string{allocation.Annotation: given}, Room: 200}

func (w *world) writer() Writer {
	clock := Clock{
		Now:   func() time.Time { return w.now },
		Sleep: func(_ context.Context, duration time.Duration) { w.now = w.now.Add(duration) },
	}
	return Writer{w, clock, NewSlots(), func(context.Context) error { return w.refusal }}
}

// Bind implements API.
func (w *world) Bind(ctx context.Context, binding *v1.Binding) error {
	return w.client.CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
}

// Read implements API.
func (w *world) Read(ctx context.Context, namespace, name string) (*v1.Pod, error) {
	if w.onRead != nil {
		w.onRead(w)
	}
	return w.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
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
		{"a proxy gave up, and the pod is gone", func(w *world, _ int) error {
			_ = w.client.Tracker().Delete(v1.SchemeGroupVersion.WithResource("pods"), "default", "a")
			return apierrors.NewGenericServerResponse(http.StatusRequestTimeout, "POST", pods, "a", "", 0, true)
		}, 1, "gone", true},
		{"another pod has its name", func(w *world, _ int) error {
			w.change(func(pod *v1.Pod) { pod.UID = "u-2" })
			return conflict
		}, 1, "gone", false},
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
	if waited := w.now.Sub(begin); waited < UncertainTime {
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

// The API server says so of a pod that is being deleted, too.
func TestAConflictWithAPodThatIsAsItWasIsARefusal(t *testing.T) {
	being := apierrors.NewConflict(pods, "a", errors.New("pod a is being deleted, cannot be assigned to a host"))
	w := newWorld(t, func(*world, int) error { return being })
	if err := w.write(); !errors.Is(err, being) || len(w.bindings) != 1 {
		t.Errorf("error %v, %d Bindings", err, len(w.bindings))
	}
}

func TestAPodWithoutRoomForAnnotationsIsNotBound(t *testing.T) {
	w := newWorld(t, func(*world, int) error { return nil })
	w.client.ClearActions()
	full := pod("1")
	full.Annotations = map[string]string{"x": strings.Repeat("y", 256*1024)}
	err := w.writer().Write(context.Background(), full, "gpu-1", binding.Binding{Room: 200})
	if err == nil || len(w.bindings) > 0 {
		t.Errorf("error %v, %d Bindings", err, len(w.bindings))
	}
}

// Somebody may change a pod as long as he likes, such as a controller that writes an annotation each second.
func TestAPodThatIsChangedForeverIsGivenUp(t *testing.T) {
	w, version := newWorld(t, func(*world, int) error { return errBroken }), 1
	w.onRead = func(w *world) {
		if version++; version > 1000 {
			t.Fatal("it never ends")
		}
		w.change(func(pod *v1.Pod) { pod.ResourceVersion = fmt.Sprint(version) })
	}
	if err := w.write(); err == nil {
		t.Error("bound")
	}
}

func TestNothingIsSentWithoutPermit(t *testing.T) {
	w := newWorld(t, func(*world, int) error { return nil })
	w.refusal = errors.New("another one binds")
	if err := w.write(); !errors.Is(err, w.refusal) || errors.Is(err, ErrUnknown) || len(w.bindings) > 0 {
		t.Errorf("error %v, %d Bindings", err, len(w.bindings))
	}
}

// A permit that ends changes nothing about a Binding that may have taken effect already.
func TestWithoutPermitAnUnclearFailureIsStillAskedAfter(t *testing.T) {
	w := newWorld(t, func(w *world, _ int) error {
		w.refusal = errors.New("another one binds")
		return errBroken
	})
	w.onRead = func(w *world) {
		if w.now.After(time.Unix(5, 0)) {
			w.bind("gpu-1")
		}
	}
	if err := w.write(); err != nil || len(w.bindings) != 1 {
		t.Errorf("error %v, %d Bindings", err, len(w.bindings))
	}
}

func TestWhereNobodyWaitsTheOutcomeIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(t, func(*world, int) error { cancel(); return ctx.Err() })
	w.onRead = func(w *world) { w.client.PrependReactor("get", "pods", broken) }
	if err := w.writer().Write(ctx, pod("1"), "gpu-1", written); !errors.Is(err, ErrUnknown) {
		t.Errorf("error: %v", err)
	}
	if err := w.writer().Write(ctx, pod("1"), "gpu-1", written); err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
}

func broken(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errBroken }

// The pod is bound, whether or not anybody waits for it.
func TestABoundPodIsBoundThoughNobodyWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	w := newWorld(t, func(*world, int) error { cancel(); return nil })
	if err := w.writer().Write(ctx, pod("1"), "gpu-1", written); err != nil {
		t.Errorf("error: %v", err)
	}
}

// slow is an API server that counts what it works on at a time.
type slow struct{ now, most atomic.Int32 }

func (s *slow) Bind(context.Context, *v1.Binding) error {
	for count := s.now.Add(1); count > s.most.Load(); {
		s.most.Store(count)
	}
	time.Sleep(20 * time.Millisecond)
	s.now.Add(-1)
	return nil
}

func (s *slow) Read(context.Context, string, string) (*v1.Pod, error) { return nil, errBroken }

// What waits in the API server is dropped there after CallTime, and sent again: that would make it slower still.
func TestOnlySoManyBindingsAreUnderWay(t *testing.T) {
	api, group := &slow{}, sync.WaitGroup{}
	writer := Writer{api, RealClock(), NewSlots(), func(context.Context) error { return nil }}
	for range 3 * maxSent {
		group.Go(func() {
			if err := writer.Write(context.Background(), pod("1"), "gpu-1", written); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if most := api.most.Load(); most > maxSent || most < 2 {
		t.Errorf("%d at a time", most)
	}
}
