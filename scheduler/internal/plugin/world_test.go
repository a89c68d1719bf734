package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"gpushare.io/scheduler/internal/sharenode"
)

const (
	memory        = "gpushare.io/memory"
	schedulerName = "gpushare-scheduler"
	patience      = 30 * time.Second
)

// world is kube-scheduler with our plugin and our configuration, before an API server that keeps what it is given.
type world struct {
	t       *testing.T
	client  *fake.Clientset
	factory *Factory
	sched   *scheduler.Scheduler
	version atomic.Int64
	// store is what the watch of pods has shown.
	store cache.Store
	// attempts are by pod.
	attempts *attempts
	// onBind is asked before a Binding takes effect.
	onBind func(*v1.Binding) error

	mutex    sync.Mutex
	bindings map[string]*v1.Binding
}

// attempts is a plugin that counts.
type attempts struct {
	mutex  sync.Mutex
	number map[string]int
}

func (a *attempts) Name() string { return "Attempts" }

func (a *attempts) PreFilter(
	_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.number[pod.Name]++
	return nil, fwk.NewStatus(fwk.Skip)
}

func (a *attempts) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (a *attempts) of(name string) int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.number[name]
}

func readConfig(t *testing.T) *config.KubeSchedulerConfiguration {
	t.Helper()
	data, err := os.ReadFile("../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	read, _, err := scheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return read.(*config.KubeSchedulerConfiguration)
}

// newWorld starts a scheduler, which the end of the test stops. A node without resources has no GPUShareNode.
func newWorld(t *testing.T, nodes ...*sharenode.Node) *world {
	t.Helper()
	w := &world{
		t: t, client: fake.NewClientset(), factory: &Factory{}, attempts: &attempts{number: map[string]int{}},
		bindings: map[string]*v1.Binding{}, onBind: func(*v1.Binding) error { return nil },
	}
	w.client.PrependReactor("create", "pods", w.bind)
	w.client.PrependReactor("patch", "pods", w.patchStatus)
	ctx, cancel := context.WithCancel(context.Background())
	profiles := readConfig(t).Profiles
	counter := config.Plugin{Name: w.attempts.Name()}
	profiles[0].Plugins.PreFilter.Enabled = append([]config.Plugin{counter}, profiles[0].Plugins.PreFilter.Enabled...)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	made, err := scheduler.New(ctx, w.client, factory, nil, recorder,
		scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{
			Name: w.factory.New,
			counter.Name: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
				return w.attempts, nil
			},
		}),
		scheduler.WithPodInitialBackoffSeconds(1), scheduler.WithPodMaxBackoffSeconds(1))
	if err != nil {
		t.Fatal(err)
	}
	w.sched, w.store = made, factory.Core().V1().Pods().Informer().GetStore()
	for _, node := range nodes {
		if len(node.Resources) > 0 {
			w.report(node)
		}
		w.addNode(node.Name)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := made.WaitForHandlersSync(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { made.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return w
}

// report has a node's plugin report.
func (w *world) report(node *sharenode.Node) { w.factory.core.setShareNode(node) }

func (w *world) addNode(name string) {
	room := v1.ResourceList{
		"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110"),
	}
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:     v1.NodeStatus{Capacity: room, Allocatable: room},
	}
	if _, err := w.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// bind does what the API server does with a Binding.
func (w *world) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	if action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	w.mutex.Lock()
	onBind := w.onBind
	w.mutex.Unlock()
	if err := onBind(binding); err != nil {
		return true, nil, err
	}
	changed := w.change(binding.Name, func(pod *v1.Pod) {
		pod.Spec.NodeName = binding.Target.Name
		pod.Annotations = binding.Annotations
	})
	if changed.Name == "" {
		return true, nil, apierrors.NewNotFound(pods.GroupResource(), binding.Name)
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.bindings[binding.Name] = binding
	return true, binding, nil
}

// patchStatus keeps the conditions that the scheduler writes. The tracker's own patches change no version, and
// informers' handlers believe that nothing has changed.
func (w *world) patchStatus(action clienttesting.Action) (bool, runtime.Object, error) {
	patch := action.(clienttesting.PatchAction)
	var patched v1.Pod
	if err := json.Unmarshal(patch.GetPatch(), &patched); err != nil {
		return true, nil, err
	}
	changed := w.change(patch.GetName(), func(pod *v1.Pod) {
		if len(patched.Status.Conditions) > 0 {
			pod.Status.Conditions = patched.Status.Conditions
		}
		if patched.Status.NominatedNodeName != "" {
			pod.Status.NominatedNodeName = patched.Status.NominatedNodeName
		}
	})
	return true, changed, nil
}

var pods = v1.SchemeGroupVersion.WithResource("pods")

// change writes a new version of a pod; nil where there is none.
func (w *world) change(name string, change func(*v1.Pod)) *v1.Pod {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	present := w.pod(name)
	if present == nil {
		return &v1.Pod{}
	}
	change(present)
	present.ResourceVersion = strconv.FormatInt(w.version.Add(1), 10)
	if err := w.client.Tracker().Update(pods, present, "default"); err != nil {
		w.t.Error(err)
	}
	return present
}

// pod returns a copy of a pod, nil where there is none.
func (w *world) pod(name string) *v1.Pod {
	object, err := w.client.Tracker().Get(pods, "default", name)
	if err != nil {
		return nil
	}
	return object.(*v1.Pod).DeepCopy()
}

// create creates a pod; units of 0 are none.
func (w *world) create(name string, units int, change ...func(*v1.Pod)) {
	w.t.Helper()
	pod := podOf(name, units)
	pod.ResourceVersion = strconv.FormatInt(w.version.Add(1), 10)
	for _, one := range change {
		one(pod)
	}
	created := w.client.CoreV1().Pods("default")
	if _, err := created.Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func podOf(name string, units int) *v1.Pod {
	amounts := v1.ResourceList{"cpu": resource.MustParse("100m")}
	if units > 0 {
		amounts[memory] = resource.MustParse(fmt.Sprint(units))
	}
	resources := v1.ResourceRequirements{Limits: amounts, Requests: amounts}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Spec: v1.PodSpec{
			SchedulerName: schedulerName,
			Containers:    []v1.Container{{Name: "main", Image: "x", Resources: resources}},
		},
	}
}

func priority(value int32) func(*v1.Pod) {
	return func(pod *v1.Pod) { pod.Spec.Priority = &value }
}

// on has a pod that is bound already, with units of a card.
func on(node, card string, units int) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.Spec.NodeName = node
		pod.Annotations = map[string]string{"gpushare.io/allocation": fmt.Sprintf(`{"node":"%s","uid":"%s",`+
			`"at":"2026-11-21T10:00:00Z","unit":"1Gi","containers":{"main":{"%s":%d}}}`, node, pod.UID, card, units)}
	}
}

func (w *world) delete(name string) {
	w.t.Helper()
	if err := w.client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// waitSeen waits until the watch has shown that a pod is there, or is not: a fake watch holds a hundred events.
func (w *world) waitSeen(name string, isThere bool) {
	w.t.Helper()
	w.eventually("the watch shows "+name, func() bool {
		_, is, _ := w.store.GetByKey("default/" + name)
		return is == isThere
	})
}

// eventually waits until something is so.
func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	w.t.Fatalf("not in time: %s", what)
}

func (w *world) binding(name string) *v1.Binding {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.bindings[name]
}

func (w *world) waitBound(names ...string) {
	w.t.Helper()
	for _, name := range names {
		w.eventually(name+" is bound", func() bool { return w.binding(name) != nil })
	}
}

// message returns why a pod is not bound, empty while the scheduler has not said so.
func (w *world) message(name string) string {
	pod := w.pod(name)
	if pod == nil {
		return ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse {
			return condition.Message
		}
	}
	return ""
}

func (w *world) waitRefused(name string) string {
	w.t.Helper()
	w.eventually(name+" is refused", func() bool { return w.message(name) != "" })
	return w.message(name)
}
