package plugin

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"gpushare.io/scheduler/internal/inspection"
	"gpushare.io/scheduler/internal/metrics"
	"gpushare.io/scheduler/internal/sharenode"
)

// gpuShareNodes is how metrics name the watch of GPUShareNodes.
const gpuShareNodes = "gpusharenodes"

// readings are what somebody reads who asks for the metrics.
func (c *core) readings() metrics.Readings {
	read := metrics.Readings{
		Nodes: map[string]int{}, LargestFree: map[string]int64{}, Reserved: c.cluster.Reserved(),
		Watches: map[string]metrics.Watch{},
	}
	for _, name := range c.cluster.Names() {
		if c.pauses.Reason(name) != "" {
			continue
		}
		for _, room := range c.cluster.Offers(name) {
			read.Nodes[room.Name]++
			read.LargestFree[room.Name] = max(read.LargestFree[room.Name], room.Greatest)
		}
	}
	read.Watches[gpuShareNodes] = metrics.Watch{
		IsListed: c.api.shareNodes.HasSynced(), Silence: c.api.shareNodes.Silence(c.clock.Now()),
	}
	return read
}

// inspect returns what is counted on each node; nil until all is read that was there at the start.
func (c *core) inspect() []inspection.Node {
	if !c.isSynced() {
		return nil
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return nil // a lister has no error of its own
	}
	return inspection.Of(c.cluster, pods, c.pauses.Reason)
}

// logPause says that a node takes no pods for a while, or takes some again.
func (c *core) logPause(node string) {
	if reason := c.pauses.Reason(node); reason != "" {
		klog.InfoS("A node is paused", "node", node, "reason", reason)
		return
	}
	klog.InfoS("A node is no longer paused", "node", node)
}

// logClosed says that a node takes no pods of ours for another reason than before, or takes some again.
func (c *core) logClosed(now *sharenode.Node) {
	reason := ""
	if before := c.cluster.ShareNode(now.Name); before != nil {
		reason = before.ClosedReason
	}
	switch {
	case reason == now.ClosedReason:
	case now.ClosedReason == "":
		klog.InfoS("A node takes pods that ask for cards again", "node", now.Name)
	default:
		klog.InfoS("A node takes no pods that ask for cards", "node", now.Name, "reason", now.ClosedReason)
	}
}

// logDoubt says that what is written on a bound pod is not believed.
func logDoubt(pod *v1.Pod, why string) {
	klog.InfoS("A pod has a wrong annotation", "pod", klog.KObj(pod), "node", pod.Spec.NodeName, "reason", why)
}
