package plugin

import fwk "k8s.io/kube-scheduler/framework"

// The events of the scheduler after which a pod that we refused may fit.
var (
	podDeleted = fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}
	podUpdated = fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update}
	nodeAdded  = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add}
)
