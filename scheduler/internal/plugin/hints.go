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
	return append(p.moreEvents(),
		fwk.ClusterEventWithHint{Event: podDeleted, QueueingHintFn: p.afterPodDeleted},
		fwk.ClusterEventWithHint{Event: nodeAdded, QueueingHintFn: p.afterNodeAdded}), nil
}

// The scheduler asks each pod that waits whether an event is worth an attempt. That would wake all that fit one freed
// card. So an event only has the waker look at its node, once the scheduler has heard of it, too: it wakes as many as
// fit together.

// afterPodDeleted has those woken that fit the node of a pod that is gone, or that was to be bound there and is not, and
// that asked for units. The kubelet has most units then, and they wait for the node's GPUShareNode. The scheduler says
// the same of a pod that is nominated no more. That pod itself is queued: others may be evicted for it elsewhere.
func (p *Plugin) afterPodDeleted(_ klog.Logger, pod *v1.Pod, before, _ any) (fwk.QueueingHint, error) {
	gone, is := before.(*v1.Pod)
	if is && gone.UID == pod.UID {
		return fwk.Queue, nil
	}
	if !is || !podapi.AsksForAny(gone, p.cluster.Resources()) {
		return fwk.QueueSkip, nil
	}
	switch nominated := gone.Status.NominatedNodeName; {
	case gone.Spec.NodeName != "":
		p.note(gone.Spec.NodeName)
	case nominated != "":
		p.anew(nominated)
	}
	return fwk.QueueSkip, nil
}

// afterNodeAdded has those woken that fit the node. Where it was away for a while, attempts meanwhile did not see it.
func (p *Plugin) afterNodeAdded(_ klog.Logger, _ *v1.Pod, _, now any) (fwk.QueueingHint, error) {
	if added, is := now.(*v1.Node); is {
		p.cluster.NodeReturned(added.Name)
		p.anew(added.Name)
	}
	return fwk.QueueSkip, nil
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
