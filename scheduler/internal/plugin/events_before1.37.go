//go:build before1.37

package plugin

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// The events of the scheduler after which a pod that we refused may fit.
var (
	podDeleted = fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}
	nodeAdded  = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
)

// moreEvents has the scheduler skip changes of taints, after each of which it would queue all pods that we refused: it
// does so where a plugin waits for nodes and not for their taints. A pod's own updates are no event: it would be those
// of every pod.
func (p *Plugin) moreEvents() []fwk.ClusterEventWithHint {
	taints := fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeTaint}
	skip := func(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.QueueSkip, nil }
	return []fwk.ClusterEventWithHint{{Event: taints, QueueingHintFn: skip}}
}
