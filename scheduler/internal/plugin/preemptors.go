package plugin

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"gpushare.io/scheduler/internal/cluster"
	"gpushare.io/scheduler/internal/podapi"
)

// schedulersView implements waiting.Scheduler by the watches of the scheduler.
type schedulersView struct{ *core }

// NominatedNode implements waiting.Scheduler.
func (v schedulersView) NominatedNode(pod *v1.Pod) string {
	known, err := v.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || known.UID != pod.UID {
		return ""
	}
	return known.Status.NominatedNodeName
}

// IsPaused implements waiting.Scheduler.
func (v schedulersView) IsPaused(node string) bool { return v.isPaused(node) }

// Nominated implements waiting.Scheduler. Plugins are made before the scheduler's queue, which has the nominated pods: it is
// there when the first attempt of a pod begins.
func (v schedulersView) Nominated(node string) []*v1.Pod {
	if v.cluster.Attempts() == 0 {
		return nil
	}
	var pods []*v1.Pod
	for _, one := range v.handle.NominatedPodsForNode(node) {
		pods = append(pods, one.GetPod())
	}
	return pods
}

// Node implements waiting.Scheduler.
func (v schedulersView) Node(name string) *v1.Node {
	node, err := v.nodes.Get(name)
	if err != nil {
		return nil
	}
	return node
}

// IsExplained implements waiting.Scheduler.
func (v schedulersView) IsExplained(pod *v1.Pod) bool {
	known, err := v.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || known.UID != pod.UID {
		return true // there is nobody to be tried
	}
	return slices.ContainsFunc(known.Status.Conditions, func(one v1.PodCondition) bool {
		return one.Type == v1.PodScheduled && one.Status == v1.ConditionFalse && one.Reason == v1.PodReasonUnschedulable
	})
}

// nodeUpdated is after what a pod may go to a node to which it might not go before.
var nodeUpdated = fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeLabel | fwk.UpdateNodeTaint}

// updates are those after which pods may go to nodes that they might not go to before. Up to 1.36 the scheduler queues all pods
// that we refused after each change of taints, unless there is a hint.
func (p *Plugin) updates() []fwk.ClusterEventWithHint {
	ofPod := fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.UpdatePodToleration}
	return []fwk.ClusterEventWithHint{
		{Event: nodeUpdated, QueueingHintFn: p.afterNodeUpdate}, {Event: ofPod, QueueingHintFn: p.afterToleration},
	}
}

// afterNodeUpdate has those woken that fit the node, and that its labels or taints kept away until now.
func (p *Plugin) afterNodeUpdate(_ klog.Logger, pod *v1.Pod, before, now any) (fwk.QueueingHint, error) {
	earlier, wasNode := before.(*v1.Node)
	if updated, isNode := now.(*v1.Node); wasNode && isNode {
		p.waiting.Updated(pod.UID, earlier, updated)
		p.note(updated.Name)
	}
	return fwk.QueueSkip, nil
}

// afterToleration queues a pod that tolerates more taints than before.
func (p *Plugin) afterToleration(_ klog.Logger, pod *v1.Pod, _, now any) (fwk.QueueingHint, error) {
	if updated, is := now.(*v1.Pod); is && updated.UID == pod.UID {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// isPaused says whether a node takes no pods for a while.
func (c *core) isPaused(node string) bool {
	return c.pauses.Reason(node) != ""
}

// disappointed returns the pods that are nominated for a node and will not fit there, whatever is released. No room that comes
// free would wake them, and others may be evicted for them elsewhere.
func (c *core) disappointed(node string) []*v1.Pod {
	var found []*v1.Pod
	resources := c.cluster.Resources()
	for _, pod := range (schedulersView{c}).Nominated(node) {
		if podapi.AsksForAny(pod, resources) && !c.cluster.WillFit(node, cluster.Ask(pod, resources), podapi.Priority(pod)) {
			found = append(found, pod)
		}
	}
	return found
}

// nominatedFor returns the node that is kept for a pod, empty where none is.
func nominatedFor(pod *v1.Pod) string {
	if pod.Spec.NodeName != "" {
		return ""
	}
	return pod.Status.NominatedNodeName
}

// keptNoMore says that no node is kept any more for a pod as it was. The scheduler does not ask pods at rest about that.
func (c *core) keptNoMore(pod *v1.Pod) {
	if node := nominatedFor(pod); node != "" {
		c.anew(node)
	}
}

// anew says that pods may fit a node, or evict others there, that were tried in vain: it is not kept any more for one that was
// nominated for it, or was added.
func (c *core) anew(node string) {
	c.waiting.Anew(node)
	c.note(node)
}
