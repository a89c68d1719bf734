package plugin

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/podapi"
)

// EventsToRegister implements fwk.EnqueueExtensions. What a GPUShareNode changes is no event of the scheduler's: waker
// wakes pods then.
func (p *Plugin) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	events := []fwk.ClusterEventWithHint{
		{Event: podDeleted, QueueingHintFn: p.afterPodDeleted},
		{Event: nodeAdded, QueueingHintFn: p.afterNodeAdded},
	}
	if hasOwnUpdates {
		events = append(events, fwk.ClusterEventWithHint{Event: ownUpdate, QueueingHintFn: p.afterOwnUpdate})
	}
	return events, nil
}

// afterPodDeleted queues a pod if it fits the node of a pod that is gone, or that was to be bound there and is not,
// and that asked for units. The kubelet has most units then, and the pod waits for its node's GPUShareNode.
func (p *Plugin) afterPodDeleted(_ klog.Logger, pod *v1.Pod, before, _ any) (fwk.QueueingHint, error) {
	gone, is := before.(*v1.Pod)
	if !is || !podapi.AsksForAny(gone, p.cluster.Resources()) {
		return fwk.QueueSkip, nil
	}
	node := gone.Spec.NodeName
	if node == "" {
		node = gone.Status.NominatedNodeName
	}
	return p.hint(pod, node), nil
}

// afterNodeAdded queues a pod if it fits the node.
func (p *Plugin) afterNodeAdded(_ klog.Logger, pod *v1.Pod, _, now any) (fwk.QueueingHint, error) {
	added, is := now.(*v1.Node)
	if !is {
		return fwk.QueueSkip, nil
	}
	return p.hint(pod, added.Name), nil
}

// hint says whether a node fits a pod that waits.
func (p *Plugin) hint(pod *v1.Pod, node string) fwk.QueueingHint {
	asked := p.waiting.Asked(pod.UID)
	if asked != nil && p.cluster.Known(node).Fits(asked) {
		return fwk.Queue
	}
	return fwk.QueueSkip
}

// afterOwnUpdate queues a pod that had no room for our annotations, and has it now. What a pod asks for never changes.
func (p *Plugin) afterOwnUpdate(_ klog.Logger, pod *v1.Pod, before, now any) (fwk.QueueingHint, error) {
	earlier, wasPod := before.(*v1.Pod)
	updated, isPod := now.(*v1.Pod)
	if !wasPod || !isPod || updated.UID != pod.UID {
		return fwk.QueueSkip, nil
	}
	asked := cluster.Ask(updated, p.cluster.Resources())
	if lackOfRoom(earlier, asked) != "" && lackOfRoom(updated, asked) == "" {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}
