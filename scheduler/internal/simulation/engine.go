// Package simulation is a scheduler with our engine in a simulated cluster (tests/simulation): it is told what watches
// show and what time it is, and asked where pods go. Nothing else uses it.
//
// What is free, who gets which cards and what is free again is decided by the same packages as in kube-scheduler. The
// scheduler's own view of pods is simulated: watches show it pods, and it assumes those that are being bound.
package simulation

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"gpushare.io/scheduler/internal/allocation"
	"gpushare.io/scheduler/internal/binding"
	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/inspection"
)

// Engine is one process.
type Engine struct {
	now     time.Time
	cluster *cluster.Cluster
	// seen are the pods of the scheduler's view that have a node, by UID.
	seen map[types.UID]*v1.Pod
	// assumed are those of them that no watch has shown there.
	assumed map[types.UID]bool
	// infos are that view of each node; none where it has changed since.
	infos map[string]*framework.NodeInfo
	// pods are all that the watch of pods has shown.
	pods map[types.UID]*v1.Pod
}

// New returns an Engine that has just been started.
func New() *Engine {
	engine := &Engine{
		seen: map[types.UID]*v1.Pod{}, assumed: map[types.UID]bool{}, infos: map[string]*framework.NodeInfo{},
		pods: map[types.UID]*v1.Pod{},
	}
	engine.cluster = cluster.New(func() time.Time { return engine.now }, func(string) {})
	return engine
}

// SetPod says that our watch of pods shows a pod.
func (e *Engine) SetPod(pod *v1.Pod) {
	e.pods[pod.UID] = pod
	if pod.Spec.NodeName != "" {
		e.cluster.SetPod(pod)
	}
}

// PodGone says that our watch of pods shows that a pod is gone, or has ended.
func (e *Engine) PodGone(uid types.UID) {
	delete(e.pods, uid)
	e.cluster.PodGone(uid)
}

// See says that a watch has shown a pod to the scheduler.
func (e *Engine) See(pod *v1.Pod) {
	if pod.Spec.NodeName != "" {
		delete(e.assumed, pod.UID)
		e.view(pod)
	}
}

// Unsee says that a watch has shown the scheduler that a pod is gone, or has ended. One that it assumes on a node stays
// there until its bind has failed.
func (e *Engine) Unsee(uid types.UID) {
	if !e.assumed[uid] {
		e.forget(uid)
	}
}

func (e *Engine) view(pod *v1.Pod) {
	e.forget(pod.UID)
	e.seen[pod.UID] = pod
	delete(e.infos, pod.Spec.NodeName)
}

func (e *Engine) forget(uid types.UID) {
	if pod := e.seen[uid]; pod != nil {
		delete(e.seen, uid)
		delete(e.infos, pod.Spec.NodeName)
	}
}

// info returns the scheduler's view of a node.
func (e *Engine) info(name string) *framework.NodeInfo {
	if e.infos[name] == nil {
		var pods []*v1.Pod
		for _, pod := range e.seen {
			if pod.Spec.NodeName == name {
				pods = append(pods, pod)
			}
		}
		info := framework.NewNodeInfo(pods...)
		info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		e.infos[name] = info
	}
	return e.infos[name]
}

// Placement is where a pod goes, and what its Binding writes.
type Placement struct {
	// Node is empty where the pod fits none.
	Node        string            `json:"node"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Room is how many bytes the annotations take, with those that are written later.
	Room int `json:"room,omitempty"`
}

// Place is an attempt to schedule a pod, up to its Binding.
func (e *Engine) Place(pod *v1.Pod) (Placement, error) {
	asked := cluster.Ask(pod, e.cluster.Resources())
	if len(asked.Parts) == 0 || asked.Unservable() != "" || lacksRoom(pod, asked) {
		return Placement{}, nil
	}
	e.cluster.Attempt()
	name := e.best(pod, asked)
	if name == "" {
		return Placement{}, nil
	}
	node := e.cluster.Room(e.info(name)).Node()
	holder, _ := node.Reserve(string(pod.UID), asked.Request)
	if err := e.cluster.Reserve(holder); err != nil {
		return Placement{}, err
	}
	assumed := pod.DeepCopy()
	assumed.Spec.NodeName = name
	e.view(assumed)
	e.assumed[pod.UID] = true
	written := binding.Of(binding.AllocationOf(holder, asked.Request, node.ShareNode(), e.now), node.ShareNode(), e.now)
	return Placement{Node: name, Annotations: written.Annotations, Room: written.Room}, nil
}

func lacksRoom(pod *v1.Pod, asked *cluster.Asked) bool {
	return allocation.LackOfRoom(allocation.SizeBesideOurs(pod.Annotations), allocation.WorstSize(asked.Request)) != ""
}

// best returns the name of the best node that fits, empty where none does.
func (e *Engine) best(pod *v1.Pod, asked *cluster.Asked) string {
	var ranked []cards.Ranked
	for _, name := range e.cluster.Names() {
		if e.cluster.HeldElsewhere(pod.UID, name) != nil {
			continue
		}
		if one, refusal := e.cluster.Room(e.info(name)).Fit(asked); refusal == nil {
			ranked = append(ranked, one)
		}
	}
	scores, best := cards.Scores(ranked), ""
	for _, one := range ranked {
		if best == "" || scores[one.Node] > scores[best] {
			best = one.Node
		}
	}
	return best
}

// Release says that a pod is surely not bound by us.
func (e *Engine) Release(uid types.UID) {
	if e.assumed[uid] {
		delete(e.assumed, uid)
		e.forget(uid)
	}
	e.cluster.Release(uid)
}

// Inspect returns what is counted on each node.
func (e *Engine) Inspect() []inspection.Node {
	pods := slices.Collect(maps.Values(e.pods))
	return inspection.Of(e.cluster, pods, func(string) string { return "" })
}
