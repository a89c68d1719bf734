package waiting

import v1 "k8s.io/api/core/v1"

const (
	// explainRounds is for how many rounds the reason of a refusal may be under way to the API server and back.
	explainRounds = 10
	// maxDoublings keeps a pod from being woken sooner than the scheduler tries each pod anyway, every five minutes.
	maxDoublings = 5
)

// Unexplained returns the pods to wake because nobody can see why they wait: the scheduler writes the reason once after an
// attempt, and does not repeat a write that failed. It is called once a round. While a pod's reason stays unseen, the pod is
// woken each time twice as late: where no status can be written, that concerns all pods that wait, and new pods would queue
// behind their attempts.
func (p *Pods) Unexplained(isExplained func(*v1.Pod) bool) []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var pods []*v1.Pod
	for _, one := range p.pods {
		if one.refusedBy == nil {
			continue
		}
		one.rounds++
		switch {
		case one.rounds != explainRounds<<one.doublings:
		case isExplained(one.pod):
			one.doublings = 0
		default:
			one.doublings = min(one.doublings+1, maxDoublings)
			pods = append(pods, one.pod)
		}
	}
	return pods
}
