//go:build before1.37

package plugin

import fwk "k8s.io/kube-scheduler/framework"

// The events of the scheduler after which a pod that we refused may fit.
var (
	podDeleted = fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}
	nodeAdded  = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
)

// moreEvents has no event of all own updates of a pod: it would be those of every pod.
func (p *Plugin) moreEvents() []fwk.ClusterEventWithHint { return p.updates() }
