//go:build !before1.37

package plugin

import fwk "k8s.io/kube-scheduler/framework"

// The events of the scheduler after which a pod that we refused may fit.
var (
	podDeleted = fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	nodeAdded  = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
)

// moreEvents are those that not every version of the scheduler has.
func (p *Plugin) moreEvents() []fwk.ClusterEventWithHint {
	ownUpdate := fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}
	return append(p.updates(), fwk.ClusterEventWithHint{Event: ownUpdate, QueueingHintFn: p.afterOwnUpdate})
}
