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

// podSet are pods, each once. Methods may be called from several goroutines.
type podSet struct {
	mutex sync.Mutex
	pods  map[types.UID]*v1.Pod
}

func (s *podSet) add(pods ...*v1.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.pods == nil {
		s.pods = map[types.UID]*v1.Pod{}
	}
	for _, pod := range pods {
		s.pods[pod.UID] = pod
	}
}

// remove says whether the pod was there.
func (s *podSet) remove(uid types.UID) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, was := s.pods[uid]
	delete(s.pods, uid)
	return was
}

// take returns all of them, and forgets them.
func (s *podSet) take() []*v1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pods := slices.Collect(maps.Values(s.pods))
	s.pods = nil
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
