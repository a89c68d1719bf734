package plugin

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
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

// world is kube-scheduler with our plugin and our configuration, before an API server.
type world struct {
	*server
	factory *Factory
	sched   *scheduler.Scheduler
	// store is what the watch of pods has shown.
	store cache.Store
	// attempts are by pod.
	attempts *attempts
	// registry has the plugin's metrics once somebody asks for them.
	registry metrics.KubeRegistry
	// lead has the scheduler begin, as when it has become the leader.
	lead func()
	// kill ends it without a word.
	kill func()
}

// attempts is a plugin that counts.
type attempts struct {
	mutex  sync.Mutex
	number map[string]int
	// kept are the names of those that the gate keeps out.
	kept sync.Map
}

// watchedGate is our Gate.
type watchedGate struct {
	*Gate
	attempts *attempts
}

func (g watchedGate) PreEnqueue(ctx context.Context, pod *v1.Pod) *fwk.Status {
	status := g.Gate.PreEnqueue(ctx, pod)
	if status.IsSuccess() {
		g.attempts.kept.Delete(pod.Name)
	} else {
		g.attempts.kept.Store(pod.Name, nil)
	}
	return status
}

func (a *attempts) isKept(name string) bool {
	_, is := a.kept.Load(name)
	return is
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

func readConfig(t testing.TB) *config.KubeSchedulerConfiguration {
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

// withoutPlugin are the profiles of any kube-scheduler.
func withoutPlugin(t testing.TB) []config.KubeSchedulerProfile {
	t.Helper()
	read, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte("apiVersion: kubescheduler.config.k8s.io/v1\n"+
		"kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: "+schedulerName+"}]\n"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return read.(*config.KubeSchedulerConfiguration).Profiles
}

// newWorld starts a scheduler, which the end of the test stops. A node without resources has no GPUShareNode.
func newWorld(t testing.TB, nodes ...*sharenode.Node) *world {
	t.Helper()
	s := newServer(t)
	s.timing.Retry = patience // nobody else binds: no pod is refused because it had to wait for the Lease
	w := s.start(nodes...)
	w.lead()
	return w
}

// start starts a scheduler that stands by.
func (s *server) start(nodes ...*sharenode.Node) *world {
	s.t.Helper()
	counts := &attempts{number: map[string]int{}}
	w := &world{server: s, factory: &Factory{connect: s.connect}, attempts: counts}
	ctx, cancel := context.WithCancel(context.Background())
	profiles := readConfig(s.t).Profiles
	counter := config.Plugin{Name: w.attempts.Name()}
	// Before all others, which may refuse the pod; for that it has to be in both lists.
	for _, set := range []*config.PluginSet{&profiles[0].Plugins.MultiPoint, &profiles[0].Plugins.PreFilter} {
		set.Enabled = append([]config.Plugin{counter}, set.Enabled...)
	}
	factory := informers.NewSharedInformerFactory(s.client, 0)
	if s.withoutGate {
		profiles[0].Plugins.PreEnqueue.Enabled = nil
	}
	registry := frameworkruntime.Registry{
		counter.Name: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return w.attempts, nil },
	}
	if err := w.factory.Register(registry); err != nil {
		s.t.Fatal(err)
	}
	newGate := registry[GateName]
	registry[GateName] = func(ctx context.Context, raw runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		made, err := newGate(ctx, raw, handle)
		return watchedGate{made.(*Gate), w.attempts}, err
	}
	made, err := scheduler.New(ctx, s.client, factory, nil, recorder,
		scheduler.WithProfiles(profiles...), scheduler.WithFrameworkOutOfTreeRegistry(registry),
		scheduler.WithPodInitialBackoffSeconds(1), scheduler.WithPodMaxBackoffSeconds(1))
	if err != nil {
		s.t.Fatal(err)
	}
	w.sched, w.store = made, factory.Core().V1().Pods().Informer().GetStore()
	for _, node := range nodes {
		if len(node.Resources) > 0 {
			w.report(node)
		}
		s.addNode(node.Name)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := made.WaitForHandlersSync(ctx); err != nil {
		s.t.Fatal(err)
	}
	if !cache.WaitForCacheSync(ctx.Done(), w.factory.core.synced...) {
		s.t.Fatal("the plugin has not read all pods")
	}
	var running sync.WaitGroup
	w.lead = func() { running.Go(func() { made.Run(ctx) }) }
	w.kill = func() { cancel(); running.Wait(); factory.Shutdown() }
	s.t.Cleanup(w.kill)
	return w
}

// report has a node's plugin report.
func (w *world) report(node *sharenode.Node) { w.factory.core.setShareNode(node) }

// create creates a pod; units of 0 are none.
func (s *server) create(name string, units int, change ...func(*v1.Pod)) {
	s.t.Helper()
	pod := podOf(name, units)
	pod.ResourceVersion = strconv.FormatInt(s.version.Add(1), 10)
	for _, one := range change {
		one(pod)
	}
	created := s.client.CoreV1().Pods("default")
	if _, err := created.Create(context.Background(), pod, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
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

func (s *server) delete(name string) {
	s.t.Helper()
	if err := s.client.CoreV1().Pods("default").Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
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

// waitCached waits until the scheduler's cache has a pod, or has it no more.
func (w *world) waitCached(pod *v1.Pod, isThere bool) {
	w.t.Helper()
	w.eventually("the scheduler's cache knows what became of "+pod.Name, func() bool {
		_, err := w.sched.Cache.GetPod(pod)
		return (err == nil) == isThere
	})
}

// waitEvicted waits until the scheduler knows that a pod is being deleted, and that another one waits for that.
func (w *world) waitEvicted(victim, preemptor, node string) {
	w.t.Helper()
	evicted := w.pod(victim)
	w.eventually(victim+" is evicted and "+preemptor+" waits for "+node, func() bool {
		waits, isThere, _ := w.store.GetByKey("default/" + preemptor)
		known, err := w.sched.Cache.GetPod(evicted)
		return isThere && waits.(*v1.Pod).Status.NominatedNodeName == node && err == nil && known.DeletionTimestamp != nil
	})
}

// eventually waits until something is so, for less long than a pod waits that nobody wakes.
func (s *server) eventually(what string, is func() bool) {
	s.t.Helper()
	s.within(8*tickTime, what, is)
}

// within waits until something is so, for some time at most.
func (s *server) within(limit time.Duration, what string, is func() bool) {
	s.t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if is() {
			return
		}
	}
	s.t.Fatalf("not in time: %s", what)
}

func (s *server) binding(name string) *v1.Binding {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.bindings[name]
}

// boundOf returns those of names that are bound.
func (s *server) boundOf(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return s.binding(name) == nil })
}

func (s *server) waitBound(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.eventually(name+" is bound", func() bool { return s.binding(name) != nil })
	}
}

// message returns why a pod is not bound, empty while the scheduler has not said so.
func (s *server) message(name string) string {
	pod := s.pod(name)
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

func (s *server) waitRefused(name string) string {
	s.t.Helper()
	s.eventually(name+" is refused", func() bool { return s.message(name) != "" })
	return s.message(name)
}
