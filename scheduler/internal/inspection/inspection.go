// Package inspection shows what the scheduler counts on each card, for people and for the auditor.
//
// Whoever the API server lets GET /configz reads it there, on kube-scheduler's secure port, below the name Name. Its form
// is that of the extender's /gpushare/inspect.
package inspection

import (
	"cmp"
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/ledger"
)

// Name is that of the inspection in /configz.
const Name = "gpushare"

// Inspection is what is counted by the time that it is written as JSON. /configz takes objects with a kind alone.
type Inspection struct {
	metav1.TypeMeta
	read func() []Node
}

// New returns what read returns by the time; nil while that is not known yet.
func New(read func() []Node) *Inspection {
	return &Inspection{metav1.TypeMeta{APIVersion: "gpushare.io/v1alpha1", Kind: "Inspection"}, read}
}

// MarshalJSON implements json.Marshaler.
func (i *Inspection) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		metav1.TypeMeta
		Nodes []Node `json:"nodes"`
	}{i.TypeMeta, i.read()})
}

// DeepCopyObject implements runtime.Object.
func (i *Inspection) DeepCopyObject() runtime.Object {
	copied := *i
	return &copied
}

// Node is a node with a GPUShareNode.
type Node struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Refusal says why the node takes no pods; empty where it does.
	Refusal string `json:"refusal"`
	Cards   []Card `json:"cards"`
}

// Card is a card. Amounts are units.
type Card struct {
	Index int64  `json:"index"`
	UUID  string `json:"uuid"`
	Units int64  `json:"units"`
	// Allocated includes Reserved.
	Allocated  int64 `json:"allocated"`
	Reserved   int64 `json:"reserved"`
	IsHealthy  bool  `json:"healthy"`
	IsCordoned bool  `json:"cordoned"`
	// Lock is the class that the card serves alone; empty where nothing of it is in use.
	Lock string `json:"lock"`
	Pods []Pod  `json:"pods"`
}

// Pod is what a pod has of a card.
type Pod struct {
	// Namespace and Name are empty where the API server does not have the pod.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Units     int64  `json:"units"`
	// IsReserved says that no watch shows the pod as bound yet.
	IsReserved bool `json:"reserved"`
}

// Of returns what is counted on every node with a GPUShareNode, by its name. pods are all that a watch shows; paused says why
// a node takes none for a while.
func Of(counted *cluster.Cluster, pods []*v1.Pod, paused func(node string) string) []Node {
	bound, known := map[string][]*v1.Pod{}, map[string]Pod{}
	for _, pod := range pods {
		known[string(pod.UID)] = Pod{Namespace: pod.Namespace, Name: pod.Name}
		if pod.Spec.NodeName != "" {
			bound[pod.Spec.NodeName] = append(bound[pod.Spec.NodeName], pod)
		}
	}
	for _, uid := range counted.Reserved() {
		pod := known[string(uid)]
		pod.IsReserved = true
		known[string(uid)] = pod
	}
	found := []Node{}
	for _, name := range counted.Names() {
		if sums := counted.Sums(name, bound[name]); sums.ShareNode() != nil {
			found = append(found, nodeOf(sums, paused(name), known))
		}
	}
	return found
}

// nodeOf returns what is counted on a node. known are the pods by UID, without their units.
func nodeOf(sums *ledger.Node, paused string, known map[string]Pod) Node {
	share, found := sums.ShareNode(), []Card{}
	for place, use := range sums.CardUses() {
		reported := &share.Cards[place]
		card := Card{
			Index: use.Index, UUID: use.UUID, Units: use.Units, Allocated: use.Allocated, Lock: use.Class.String(),
			IsHealthy: reported.IsHealthy, IsCordoned: reported.IsCordoned, Pods: podsOf(use, known),
		}
		for _, pod := range card.Pods {
			if pod.IsReserved {
				card.Reserved += pod.Units
			}
		}
		found = append(found, card)
	}
	return Node{Name: share.Name, Unit: share.Unit, Refusal: cmp.Or(share.ClosedReason, paused), Cards: found}
}

func podsOf(use ledger.CardUse, known map[string]Pod) []Pod {
	found := []Pod{}
	for uid, units := range use.UnitsOf {
		if units > 0 {
			pod := known[uid]
			pod.UID, pod.Units = uid, units
			found = append(found, pod)
		}
	}
	slices.SortFunc(found, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	return found
}
