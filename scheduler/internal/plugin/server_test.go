package plugin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/sharenodes"
)

var pods = v1.SchemeGroupVersion.WithResource("pods")

// server is an API server that keeps what it is given.
type server struct {
	t       testing.TB
	client  *fake.Clientset
	version atomic.Int64
	leases  *leases
	timing  bindlease.Timing

	mutex    sync.Mutex
	bindings map[string]*v1.Binding
	// onBind is asked before a Binding takes effect.
	onBind func(*v1.Binding) error
	// afterBind is called once a Binding has taken effect, before that is answered.
	afterBind func(*v1.Binding)
	// unseen are pods that no watch shows yet, ended those that no watch shows any more.
	unseen, ended []*v1.Pod
	// lingering are pods that need a while to end once they are deleted, by name.
	lingering map[string]bool
	isAway    bool
	// takesAnyVersion has a Binding take effect on a pod that was changed since: a leader that is killed here writes a
	// status in its last moment, and could not if it was a process.
	takesAnyVersion bool
	// withoutGate leaves our Gate out of schedulers that start.
	withoutGate bool
}

var errAway = errors.New("connection refused")

// away has nobody reach the API server, or everybody again.
func (s *server) away(is bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.isAway = is
	s.leases.away(is)
}

// reached returns an error while nobody reaches the API server.
func (s *server) reached(ctx context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.isAway {
		return errAway
	}
	return ctx.Err()
}

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{
		t: t, client: fake.NewClientset(), bindings: map[string]*v1.Binding{}, lingering: map[string]bool{}, leases: &leases{},
		onBind: func(*v1.Binding) error { return nil }, afterBind: func(*v1.Binding) {},
		timing: bindlease.Timing{
			Uncertain: time.Second, Renew: 200 * time.Millisecond, Duration: 3 * time.Second, Idle: time.Second,
			Retry: 100 * time.Millisecond,
		},
	}
	s.leases.release()
	s.client.PrependReactor("create", "pods", s.react)
	s.client.PrependReactor("patch", "pods", s.patchStatus)
	s.client.PrependReactor("delete", "pods", s.remove)
	return s
}

// connect stands for the connection of a plugin.
func (s *server) connect(fwk.Handle, Args, sharenodes.Handler) (*connection, error) {
	return &connection{s, s.leases, s.timing, steadyClock(), watched{}, s.bound}, nil
}

// watched is a watch of GPUShareNodes that has shown all there are.
type watched struct{}

func (watched) Run(context.Context) {}

func (watched) HasSynced() bool { return true }

func (watched) Silence(time.Time) time.Duration { return 0 }

func (s *server) addNode(name string) {
	room := v1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110"),
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:     v1.NodeStatus{Capacity: room, Allocatable: room},
	}
	_, err := s.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
}

// Bind implements bindcall.API: a Binding that was sent takes effect also where nobody waits for that.
func (s *server) Bind(ctx context.Context, binding *v1.Binding) error {
	if err := s.reached(ctx); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.bind(binding) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Read implements bindcall.API.
func (s *server) Read(ctx context.Context, _, name string) (*v1.Pod, error) {
	if err := s.reached(ctx); err != nil {
		return nil, err
	}
	if pod := s.endedPod(name); pod != nil {
		return pod, nil
	}
	if pod := s.pod(name); pod != nil {
		return pod, nil
	}
	return nil, apierrors.NewNotFound(pods.GroupResource(), name)
}

// linger has a pod end only once end is called, whoever deletes it.
func (s *server) linger(name string) (end func()) {
	set := func(is bool) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.lingering[name] = is
	}
	set(true)
	return func() {
		set(false)
		s.delete(name)
	}
}

// end has a pod ended, as the watch of those that have not shows it.
func (s *server) end(pod *v1.Pod) {
	s.mutex.Lock()
	s.ended = append(s.ended, pod)
	s.mutex.Unlock()
	s.delete(pod.Name)
}

func (s *server) endedPod(name string) *v1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, pod := range s.ended {
		if pod.Name == name {
			return pod
		}
	}
	return nil
}

// bound calls seen with all bound pods.
func (s *server) bound(_ context.Context, seen func(types.UID, map[string]string)) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	all, err := s.client.Tracker().List(pods, v1.SchemeGroupVersion.WithKind("Pod"), "default")
	if err != nil {
		return err
	}
	list := all.(*v1.PodList)
	for place := range list.Items {
		if pod := &list.Items[place]; pod.Spec.NodeName != "" {
			seen(pod.UID, pod.Annotations)
		}
	}
	for _, pod := range s.unseen {
		seen(pod.UID, pod.Annotations)
	}
	return nil
}

func (s *server) react(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	return true, binding, s.bind(binding)
}

// bind does what the API server does with a Binding: after its time it drops it.
func (s *server) bind(binding *v1.Binding) error {
	began := time.Now()
	s.mutex.Lock()
	onBind := s.onBind
	s.mutex.Unlock()
	if err := onBind(binding); err != nil {
		return err
	}
	if err := s.assign(binding, began); err != nil {
		return err
	}
	s.afterBind(binding)
	return nil
}

func (s *server) assign(binding *v1.Binding, began time.Time) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	present, group := s.pod(binding.Name), pods.GroupResource()
	switch {
	case time.Since(began) > s.timing.Uncertain*3/4:
		return apierrors.NewTimeoutError("the request took too long", 0)
	case present == nil:
		return apierrors.NewNotFound(group, binding.Name)
	case binding.UID != "" && binding.UID != present.UID, present.Spec.NodeName != "",
		!s.takesAnyVersion && binding.ResourceVersion != "" && binding.ResourceVersion != present.ResourceVersion:
		return apierrors.NewConflict(group, binding.Name, errors.New("it has changed"))
	}
	present.Spec.NodeName, present.Annotations = binding.Target.Name, binding.Annotations
	s.write(present)
	s.bindings[binding.Name] = binding
	return nil
}

// patchStatus keeps the conditions that the scheduler writes. The tracker's own patches change no version, and
// informers' handlers believe that nothing has changed.
func (s *server) patchStatus(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var patched v1.Pod
	if err := json.Unmarshal(patch.GetPatch(), &patched); err != nil {
		return true, nil, err
	}
	changed := s.change(patch.GetName(), func(pod *v1.Pod) {
		for place := range patched.Status.Conditions {
			mergeCondition(&pod.Status, &patched.Status.Conditions[place])
		}
		if bytes.Contains(patch.GetPatch(), []byte(`"nominatedNodeName"`)) { // null where it is none any more
			pod.Status.NominatedNodeName = patched.Status.NominatedNodeName
		}
	})
	return true, changed, nil
}

// remove deletes a pod while nobody else writes it.
func (s *server) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	name := action.(clienttesting.DeleteAction).GetName()
	if present := s.pod(name); present != nil && s.lingering[name] {
		now := metav1.Now()
		present.DeletionTimestamp = &now
		s.write(present)
		return true, nil, nil
	}
	return true, nil, s.client.Tracker().Delete(pods, action.GetNamespace(), name)
}

// mergeCondition writes a condition of which a patch has the fields that change.
func mergeCondition(status *v1.PodStatus, patch *v1.PodCondition) {
	for place := range status.Conditions {
		if present := &status.Conditions[place]; present.Type == patch.Type {
			present.Status = cmp.Or(patch.Status, present.Status)
			present.Reason = cmp.Or(patch.Reason, present.Reason)
			present.Message = cmp.Or(patch.Message, present.Message)
			return
		}
	}
	status.Conditions = append(status.Conditions, *patch)
}

// change writes a new version of a pod, an empty one where there is none.
func (s *server) change(name string, change func(*v1.Pod)) *v1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	present := s.pod(name)
	if present == nil {
		return &v1.Pod{}
	}
	change(present)
	s.write(present)
	return present
}

func (s *server) write(pod *v1.Pod) {
	pod.ResourceVersion = strconv.FormatInt(s.version.Add(1), 10)
	if err := s.client.Tracker().Update(pods, pod, "default"); err != nil {
		s.t.Error(err)
	}
}

// pod returns a copy of a pod, nil where there is none.
func (s *server) pod(name string) *v1.Pod {
	object, err := s.client.Tracker().Get(pods, "default", name)
	if err != nil {
		return nil
	}
	return object.(*v1.Pod).DeepCopy()
}

// leases is the one Lease of those who bind.
type leases struct {
	mutex   sync.Mutex
	lease   *coordinationv1.Lease
	version int
	isAway  bool
}

func (l *leases) away(is bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.isAway = is
}

// Get implements bindlease.Client.
func (l *leases) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.isAway {
		return nil, errAway
	}
	return l.lease.DeepCopy(), nil
}

// Update implements bindlease.Client.
func (l *leases) Update(
	_ context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch {
	case l.isAway:
		return nil, errAway
	case lease.ResourceVersion != l.lease.ResourceVersion:
		return nil, apierrors.NewConflict(coordinationv1.Resource("leases"), lease.Name, errors.New("it has changed"))
	}
	l.set(lease.Spec)
	return l.lease.DeepCopy(), nil
}

func (l *leases) set(spec coordinationv1.LeaseSpec) {
	l.version++
	l.lease = &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: bindlease.Name, ResourceVersion: strconv.Itoa(l.version)},
		Spec:       *spec.DeepCopy(),
	}
}

// hold has an extender hold the Lease.
func (l *leases) hold(identity string, seconds int32) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	transitions := int32(l.version)
	l.set(coordinationv1.LeaseSpec{
		HolderIdentity: &identity, LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions,
	})
}

// release has an extender give the Lease back.
func (l *leases) release() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	seconds, transitions := int32(1), int32(l.version)
	l.set(coordinationv1.LeaseSpec{LeaseDurationSeconds: &seconds, LeaseTransitions: &transitions})
}

// holder returns an empty text where nobody holds the Lease.
func (l *leases) holder() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.lease.Spec.HolderIdentity
}
