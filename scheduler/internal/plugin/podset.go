package plugin

import (
	"maps"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
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

func (s *podSet) isEmpty() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.pods) == 0
}

// take returns all of them, and forgets them.
func (s *podSet) take() []*v1.Pod {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	pods := slices.Collect(maps.Values(s.pods))
	s.pods = nil
	return pods
}
