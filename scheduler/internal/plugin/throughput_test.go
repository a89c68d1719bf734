package plugin

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"gpushare.io/scheduler/internal/bindlease"
	"gpushare.io/scheduler/internal/sharenodes"
)

// BenchmarkThroughput is kube-scheduler with all its plugins in clusters of nodes with 8 cards and 8 pods each, but for its
// connection to the API server: pods that ask for cards, pods that do not, and those without our plugin. What counts is
// "cpu-us/pod": wall time has what others take of the machine.
func BenchmarkThroughput(b *testing.B) {
	for _, number := range []int{100, 1000} {
		for _, kind := range []struct {
			name      string
			units     int
			hasPlugin bool
		}{{"shared", 1, true}, {"plain", 0, true}, {"stock", 0, false}} { // units of pods that are gone count for 4 s
			b.Run(fmt.Sprintf("%s-%d", kind.name, number), func(b *testing.B) {
				f := newFactory(b, number, kind.hasPlugin)
				f.run(100, kind.units, "warm")
				b.ReportAllocs()
				b.ResetTimer()
				before := cpuTime(b)
				for done := 0; done < b.N; done += 200 {
					f.run(min(200, b.N-done), kind.units, strconv.Itoa(done))
				}
				b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/pod")
			})
		}
	}
}

// BenchmarkBesideWaiting is the same in 100 nodes with pods that fit no card, at rest.
func BenchmarkBesideWaiting(b *testing.B) {
	for _, number := range []int{0, 1000, 5000} {
		b.Run(strconv.Itoa(number), func(b *testing.B) {
			f := newFactory(b, 100, true)
			f.wait(number)
			b.ResetTimer()
			before := cpuTime(b)
			for done := 0; done < b.N; done += 200 {
				f.run(min(200, b.N-done), 1, strconv.Itoa(done))
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-us/pod")
		})
	}
}

// BenchmarkHeap is what kube-scheduler keeps of 5,000 nodes and their 40,000 pods, with our plugin and without, in MiB.
func BenchmarkHeap(b *testing.B) {
	for _, kind := range []struct {
		name      string
		hasPlugin bool
	}{{"shared", true}, {"stock", false}} {
		b.Run(kind.name, func(b *testing.B) {
			for b.Loop() {
				f := newFactory(b, 5000, kind.hasPlugin)
				f.run(200, 1, "run")
				b.ReportMetric(float64(heap())/(1<<20), "MiB")
			}
		})
	}
}

// cpuTime is the processor time of this process: where others compute as well, the clock says nothing.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// factory is kube-scheduler before watches that show what it binds at once.
type factory struct {
	b      *testing.B
	shown  *watch.FakeWatcher
	mutex  sync.Mutex
	bound  map[string]*v1.Pod
	unseen map[string]*v1.Pod
	all    chan struct{}
	leases *leases
}

func newFactory(b *testing.B, number int, hasPlugin bool) *factory {
	b.Helper()
	f := &factory{
		b: b, shown: watch.NewFakeWithChanSize(1000, false), bound: map[string]*v1.Pod{}, unseen: map[string]*v1.Pod{},
		leases: &leases{},
	}
	f.leases.release()
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		binding := action.(clienttesting.CreateAction).GetObject().(*v1.Binding)
		return true, binding, f.Bind(context.Background(), binding)
	})
	nodes, pods := v1.NodeList{}, v1.PodList{}
	nodes.ResourceVersion, pods.ResourceVersion = "1", "1"
	for place := range number {
		nodes.Items = append(nodes.Items, *largeNode(place))
		for card := range 8 {
			pod := tolerant(podOf(heldName(place, card), 4))
			on(nodes.Items[place].Name, fmt.Sprintf("GPU-%d", card), 4)(pod)
			pod.ResourceVersion = "1"
			pods.Items = append(pods.Items, *pod)
		}
	}
	shared := informers.NewSharedInformerFactory(client, 0)
	f.show(shared, &v1.Pod{}, &pods, f.shown)
	f.show(shared, &v1.Node{}, &nodes, watch.NewFake())
	f.start(client, shared, hasPlugin, number)
	return f
}

// unlisted is a list and a watch in two steps.
type unlisted struct{ *cache.ListWatch }

func (unlisted) IsWatchListSemanticsUnSupported() bool { return true }

func (f *factory) show(shared informers.SharedInformerFactory, kind, all runtime.Object, changes watch.Interface) {
	shared.InformerFor(kind, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		listed := unlisted{&cache.ListWatch{
			ListWithContextFunc:  func(context.Context, metav1.ListOptions) (runtime.Object, error) { return all, nil },
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return changes, nil },
		}}
		return cache.NewSharedIndexInformer(listed, kind, 0, cache.Indexers{})
	})
}

func (f *factory) start(client kubernetes.Interface, shared informers.SharedInformerFactory, hasPlugin bool, number int) {
	ctx, cancel := context.WithCancel(context.Background())
	made, profiles := &Factory{connect: f.connect}, readConfig(f.b).Profiles
	if !hasPlugin {
		profiles = withoutPlugin(f.b)
	}
	registry := frameworkruntime.Registry{}
	if err := made.Register(registry); err != nil {
		f.b.Fatal(err)
	}
	sched, err := scheduler.New(ctx, client, shared, nil, recorder, scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		f.b.Fatal(err)
	}
	if hasPlugin {
		for place := range number {
			made.core.setShareNode(node(nodeName(place), 8, holdersOn(place)...))
		}
	}
	shared.Start(ctx.Done())
	shared.WaitForCacheSync(ctx.Done())
	if err := sched.WaitForHandlersSync(ctx); err != nil {
		f.b.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { sched.Run(ctx) })
	f.b.Cleanup(func() { cancel(); running.Wait() })
}

func (f *factory) connect(fwk.Handle, Args, sharenodes.Handler) (*connection, error) {
	none := func(context.Context, func(types.UID, map[string]string)) error { return nil }
	return &connection{f, f.leases, bindlease.RealTiming(), bindlease.RealClock(), watched{}, none}, nil
}

// run has pods created at once, bound, and deleted.
func (f *factory) run(number, units int, label string) {
	f.all = make(chan struct{})
	created := map[string]*v1.Pod{}
	for place := range number {
		pod := tolerant(podOf(fmt.Sprintf("run-%s-%d", label, place), units))
		pod.ResourceVersion = "2"
		created[pod.Name] = pod
	}
	f.mutex.Lock()
	f.unseen = maps.Clone(created)
	f.mutex.Unlock()
	for _, pod := range created {
		f.shown.Add(pod)
	}
	select {
	case <-f.all:
	case <-time.After(5 * time.Minute):
		f.b.Fatalf("%d pods are not bound", len(f.unseen))
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, pod := range f.bound {
		f.shown.Delete(pod)
	}
	clear(f.bound)
}

// wait has pods wait that fit no card, until all are at rest.
func (f *factory) wait(number int) {
	refused := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable}
	before := gated(f.b) // pods of factories before this one
	for place := range number {
		pod := tolerant(podOf(fmt.Sprintf("waits-%d", place), 17))
		pod.ResourceVersion = "2"
		pod.Status.Conditions = []v1.PodCondition{refused}
		f.shown.Add(pod)
	}
	for deadline := time.Now().Add(2 * time.Minute); gated(f.b)-before < number; time.Sleep(tickTime) {
		if time.Now().After(deadline) {
			f.b.Fatalf("%d pods are at rest", gated(f.b)-before)
		}
	}
}

// Bind implements bindcall.API.
func (f *factory) Bind(_ context.Context, binding *v1.Binding) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	bound := f.unseen[binding.Name].DeepCopy()
	bound.Spec.NodeName, bound.Annotations, bound.ResourceVersion = binding.Target.Name, binding.Annotations, "3"
	delete(f.unseen, binding.Name)
	f.bound[binding.Name] = bound
	f.shown.Modify(bound)
	if len(f.unseen) == 0 {
		close(f.all)
	}
	return nil
}

// Read implements bindcall.API.
func (f *factory) Read(context.Context, string, string) (*v1.Pod, error) { return &v1.Pod{}, nil }

func nodeName(place int) string { return fmt.Sprintf("bench-%05d", place) }

func heldName(place, card int) string { return fmt.Sprintf("held-%05d-%d", place, card) }

// holdersOn are the pods of a node as its plugin reports them.
func holdersOn(place int) []any {
	var holders []any
	for card := range 8 {
		holders = append(holders, "uid-"+heldName(place, card), card, 4)
	}
	return holders
}

func tolerant(pod *v1.Pod) *v1.Pod {
	pod.Labels = map[string]string{"app": "bench"}
	pod.Spec.Containers[0].Image = "registry.example/team-1/workload-001:v1"
	pod.Spec.Tolerations = []v1.Toleration{{Key: "bench.example/object", Operator: "Exists", Effect: "NoSchedule"}}
	return pod
}

// largeNode is a node as a kubelet keeps it up, with many images.
func largeNode(place int) *v1.Node {
	name := nodeName(place)
	room := v1.ResourceList{
		"cpu": resource.MustParse("192"), "memory": resource.MustParse("1536Gi"), "pods": resource.MustParse("250"),
		memory: resource.MustParse("128"),
	}
	made := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{
			"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", place%3),
		}},
		Spec:   v1.NodeSpec{Taints: []v1.Taint{{Key: "bench.example/object", Effect: "NoSchedule"}}},
		Status: v1.NodeStatus{Capacity: room, Allocatable: room},
	}
	for number := range 40 {
		repository := fmt.Sprintf("registry.example/team-%d/workload-%03d", number%7, number)
		made.Status.Images = append(made.Status.Images, v1.ContainerImage{
			Names: []string{fmt.Sprintf("%s@sha256:%064x", repository, number), repository + ":v1"}, SizeBytes: 1e9,
		})
	}
	return made
}
