package plugin

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"gpushare.io/scheduler/internal/sharenode"
)

// full is a cluster in which nothing is free, before a scheduler with all of its plugins.
type full struct {
	framework.Framework
	infos []fwk.NodeInfo
}

// fullNodes are of 8 cards, and each card has two pods; of plain pods as many have all of a node's processors.
func fullNodes(b *testing.B, number int, isPlain bool, waiting ...*v1.Pod) *full {
	b.Helper()
	s := newServer(b)
	var shares []*sharenode.Node
	for place := range number {
		name, holders := fmt.Sprintf("gpu-%d", place), []any(nil)
		for tenant := range 16 {
			uid := fmt.Sprintf("%s-%d", name, tenant)
			if isPlain {
				s.create(uid, 0, cpus("4"), func(pod *v1.Pod) { pod.Spec.NodeName = name })
				continue
			}
			s.create(uid, 8, on(name, fmt.Sprintf("GPU-%d", tenant/2), 8))
			holders = append(holders, "uid-"+uid, tenant/2, 8)
		}
		shares = append(shares, node(name, 8, holders...))
	}
	for _, pod := range waiting {
		s.create(pod.Name, 0, func(created *v1.Pod) { created.Spec = pod.Spec })
	}
	w := s.start(shares...)
	return w.full(b)
}

// full returns the cluster as an attempt sees it. Nobody is evicted: each attempt finds the same.
func (w *world) full(b *testing.B) *full {
	b.Helper()
	w.factory.core.hold = func(context.Context) (uint64, error) { return 0, nil } // the benchmark may be kept from renewing a Lease
	w.client.PrependReactor("*", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &v1.Pod{}, nil
	})
	profile := w.sched.Profiles[schedulerName]
	snapshot := profile.SnapshotSharedLister().(*cache.Snapshot)
	if err := w.sched.Cache.UpdateSnapshot(klog.Background(), snapshot); err != nil {
		b.Fatal(err)
	}
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	return &full{profile, infos}
}

func cpus(amount string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		list := v1.ResourceList{"cpu": resource.MustParse(amount)}
		pod.Spec.Containers[0].Resources = v1.ResourceRequirements{Limits: list, Requests: list}
	}
}

// nominate makes one attempt of a pod, and returns for which node it is nominated.
func (f *full) nominate(b *testing.B, pod *v1.Pod) string {
	b.Helper()
	ctx, state, statuses := context.Background(), framework.NewCycleState(), framework.NewDefaultNodeToStatus()
	if _, status, _ := f.RunPreFilterPlugins(ctx, state, pod); !status.IsSuccess() {
		b.Fatal(status)
	}
	for _, info := range f.infos {
		statuses.Set(info.Node().Name, f.RunFilterPluginsWithNominatedPods(ctx, state, pod, info))
	}
	result, status := f.RunPostFilterPlugins(ctx, state, pod, statuses)
	if !status.IsSuccess() {
		b.Fatal(status)
	}
	return result.NominatedNodeName
}

// BenchmarkPreemptor is an attempt of an important pod in a full cluster: its filters, one node after the other, and who
// has to go for it. Beside the same with processors instead of cards, for kube-scheduler alone.
func BenchmarkPreemptor(b *testing.B) {
	oneNode := func(pod *v1.Pod) { pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "gpu-7"} }
	for _, kind := range []struct {
		name    string
		isPlain bool
		change  func(*v1.Pod)
	}{
		{"card/of one node", false, oneNode},
		{"card/of any node", false, func(*v1.Pod) {}},
		{"CPU/of one node", true, oneNode},
		{"CPU/of any node", true, func(*v1.Pod) {}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			pod := podOf("high", 16)
			if kind.isPlain {
				pod = podOf("high", 0)
				cpus("8")(pod)
			}
			kind.change(pod)
			priority(100)(pod)
			f := fullNodes(b, 100, kind.isPlain, pod)
			b.ReportAllocs()
			began := processor()
			for b.Loop() {
				if f.nominate(b, pod) == "" {
					b.Fatal("nobody goes for it")
				}
			}
			b.ReportMetric(float64((processor()-began).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// processor returns how long the process has had a processor: where others compute as well, the clock says nothing.
func processor() time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
