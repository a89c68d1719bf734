package waiting

import v1 "k8s.io/api/core/v1"

// explainRounds is for how many rounds the reason of a refusal may be under way to the API server and back.
const explainRounds = 10

// Unexplained returns the pods to wake because nobody can see why they wait: the scheduler writes the reason once after an
// attempt, and does not repeat a write that failed. It is called once a round, and asks isExplained once after each refusal.
func (p *Pods) Unexplained(isExplained func(*v1.Pod) bool) []*v1.Pod {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	var pods []*v1.Pod
	for _, one := range p.pods {
		if one.refusedBy == nil {
			continue
		}
		one.rounds++
		if one.rounds == explainRounds && !isExplained(one.pod) {
			pods = append(pods, one.pod)
		}
	}
	return pods
}
