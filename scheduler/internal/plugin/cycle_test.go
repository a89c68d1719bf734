package plugin

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"gpushare.io/scheduler/internal/bindcall"
)

// manyNodes returns our plugin in a cluster of many nodes with 8 cards, and 8 pods of 4 units on each.
func manyNodes(b *testing.B, number int) (*Plugin, []fwk.NodeInfo) {
	b.Helper()
	var bound []*v1.Pod
	var nodes []*v1.Node
	for place := range number {
		name := fmt.Sprintf("gpu-%d", place)
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		for card := range 8 {
			pod := podOf(fmt.Sprintf("%s-%d", name, card), 4)
			on(name, fmt.Sprintf("GPU-%d", card), 4)(pod)
			bound = append(bound, pod)
		}
	}
	snapshot, client := cache.NewSnapshot(bound, nodes), fake.NewClientset()
	handle, err := frameworkruntime.NewFramework(context.Background(), nil, nil,
		frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(informers.NewSharedInformerFactory(client, 0)),
		frameworkruntime.WithPodNominator(noNominator{}))
	if err != nil {
		b.Fatal(err)
	}
	made := newCore(handle, bindcall.RealClock())
	made.know(handle, func(string) {})
	for place := range number {
		made.cluster.SetShareNode(node(fmt.Sprintf("gpu-%d", place), 8))
	}
	for _, pod := range bound {
		made.cluster.SetPod(pod)
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	return &Plugin{core: made, handle: handle}, infos
}

// noNominator has no nominated pods.
type noNominator struct{ fwk.PodNominator }

func (noNominator) NominatedPodsForNode(string) []fwk.PodInfo { return nil }

// cycle runs all that a pod costs before it is bound, the filters one after the other.
func cycle(b *testing.B, p *Plugin, pod *v1.Pod, infos []fwk.NodeInfo) (fwk.CycleState, int) {
	b.Helper()
	waits(b, p.handle, pod)
	ctx, state, fits := context.Background(), framework.NewCycleState(), 0
	if _, status := p.PreFilter(ctx, state, pod, infos); status.IsSkip() {
		return state, 0
	}
	for _, info := range infos {
		if p.Filter(ctx, state, pod, info).IsSuccess() {
			fits++
		}
	}
	p.PreScore(ctx, state, pod, infos)
	return state, fits
}

// BenchmarkCycle is an attempt in a cluster of 5,000 nodes, of which one has changed since the last one.
func BenchmarkCycle(b *testing.B) {
	p, infos := manyNodes(b, 5000)
	for _, kind := range []struct {
		name  string
		units int
	}{{"plain", 0}, {"fits", 4}, {"waits", 13}} {
		b.Run(kind.name, func(b *testing.B) {
			b.ReportAllocs()
			for number := 0; b.Loop(); number++ {
				pod := podOf(fmt.Sprintf("%s-%d", kind.name, number), kind.units)
				state, fits := cycle(b, p, pod, infos)
				if fits == 0 {
					continue
				}
				target := infos[number%len(infos)].Node().Name
				if status := p.Reserve(context.Background(), state, pod, target); !status.IsSuccess() {
					b.Fatal(status)
				}
				p.Unreserve(context.Background(), state, pod, target)
			}
		})
	}
}

// BenchmarkRefused is an attempt that fits no node, to its end.
func BenchmarkRefused(b *testing.B) {
	p, infos := manyNodes(b, 5000)
	b.ReportAllocs()
	for number := 0; b.Loop(); number++ {
		pod := podOf(fmt.Sprintf("waits-%d", number), 13)
		state := framework.NewCycleState()
		p.PreFilter(context.Background(), state, pod, infos)
		statuses := framework.NewDefaultNodeToStatus()
		for _, info := range infos {
			status := p.Filter(context.Background(), state, pod, info)
			statuses.Set(info.Node().Name, status.WithPlugin(Name))
		}
		p.PostFilter(context.Background(), state, pod, statuses)
	}
}

// BenchmarkPreemption is the trial of one node with 128 pods, as DefaultPreemption makes it.
func BenchmarkPreemption(b *testing.B) {
	var bound []*v1.Pod
	for number := range 128 {
		bound = append(bound, boundPod(fmt.Sprintf("low-%d", number), fmt.Sprintf("GPU-%d", number%8), 1))
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		t := newBench(b, node("gpu-1", 8), bound...)
		pod := podOf("high", 8)
		t.begin(pod)
		info := t.info()
		b.StartTimer()
		if victims := t.preempt(pod, info, bound); victims != 8 {
			b.Fatal(victims)
		}
	}
}

// preempt returns how many pods have to go.
func (b *bench) preempt(pod *v1.Pod, info fwk.NodeInfo, pods []*v1.Pod) int {
	ctx, state, victims := context.Background(), b.state.Clone(), 0
	for _, one := range pods {
		b.RemovePod(ctx, state, pod, infoOf(b.t, one), info)
	}
	if !b.Filter(ctx, state, pod, info).IsSuccess() {
		return 0
	}
	for _, one := range pods {
		b.AddPod(ctx, state, pod, infoOf(b.t, one), info)
		if !b.Filter(ctx, state, pod, info).IsSuccess() {
			b.RemovePod(ctx, state, pod, infoOf(b.t, one), info)
			victims++
		}
	}
	return victims
}

// BenchmarkReport is a report of a node's plugin while 1,000 pods wait.
func BenchmarkReport(b *testing.B) {
	p, infos := manyNodes(b, 100)
	for number := range 1000 {
		cycle(b, p, podOf(fmt.Sprintf("waits-%d", number), 13), infos)
	}
	waker := newWaker(p.waiting, func([]*v1.Pod) { b.Fatal("nobody fits") }, nil)
	for number := 0; b.Loop(); number++ {
		name := fmt.Sprintf("gpu-%d", number%100)
		p.cluster.SetShareNode(node(name, 8))
		waker.note(name)
		waker.look(p.core)
	}
}

// BenchmarkMemory is what we keep of 5,000 nodes and their 40,000 pods, besides the pods themselves.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		p, infos := manyNodes(b, 5000)
		cycle(b, p, podOf("fits", 4), infos)
		cycle(b, p, podOf("waits", 13), infos)
		with := heap()
		p.core, infos[0] = nil, nil
		b.ReportMetric(float64(with-heap())/(1<<20), "MiB")
		runtime.KeepAlive(infos)
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
