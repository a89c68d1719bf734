//go:build before1.37

package plugin

import fwk "k8s.io/kube-scheduler/framework"

// The events of the scheduler after which a pod that we refused may fit.
var (
	podDeleted = fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}
	nodeAdded  = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
	// ownUpdate would be every update of every pod.
	ownUpdate fwk.ClusterEvent
)

const hasOwnUpdates = false
