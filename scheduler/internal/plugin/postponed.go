package plugin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// postponed are pods that were not tried because another one may be binding. The scheduler would try each of them again
// in its own time; they are tried as soon as that is over.
type postponed struct {
	mutex sync.Mutex
	pods  map[types.UID]*v1.Pod
}

func (p *postponed) add(pod *v1.Pod) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.pods == nil {
		p.pods = map[types.UID]*v1.Pod{}
	}
	p.pods[pod.UID] = pod
}

func (p *postponed) remove(uid types.UID) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	delete(p.pods, uid)
}

// take returns all of them, and forgets them.
func (p *postponed) take() []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	pods := slices.Collect(maps.Values(p.pods))
	p.pods = nil
	return pods
}

// confirmTime is between two questions after pods that no watch has shown.
const confirmTime = 10 * time.Second

// confirm asks the API server after pods that were read at a takeover and that no watch has shown for long, until ctx
// ends: they are gone, or the watch is late.
func (c *core) confirm(ctx context.Context) {
	ticker := time.NewTicker(confirmTime)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.confirmOnce(ctx)
		}
	}
}

func (c *core) confirmOnce(ctx context.Context) {
	unseen := c.cluster.Unseen()
	if len(unseen) == 0 {
		return
	}
	present := map[types.UID]bool{}
	if err := c.api.bound(ctx, func(uid types.UID, _ map[string]string) { present[uid] = true }); err != nil {
		klog.FromContext(ctx).Info("Cannot read pods that others have bound: their units stay taken", "pods", len(unseen),
			"reason", err)
		return
	}
	c.cluster.Confirm(unseen, present)
}
