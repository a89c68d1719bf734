package waiting

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// explainRounds is for how many rounds the reason of a refusal may be under way to the API server and back. The waker looks
	// for the reason again whenever as many rounds are over.
	explainRounds = 10
	// maxDoublings keeps a pod from being woken sooner than the scheduler tries each pod anyway, every five minutes.
	maxDoublings = 5
	// maxRestRounds is after how many rounds a pod at rest is tried anyway, as the scheduler does with all others. Up to 1.36 it
	// does not ask our Gate then.
	maxRestRounds = 300
)

// Rest begins a round. It returns the pods to wake, and those that are at rest from now on: the scheduler need not look at them
// until they are woken. With each pod that is bound, changed or gone, it looks at each of the others that wait.
//
// At rest is who was refused by us alone, once the API server shows why. Woken are:
//   - a pod that has been at rest for long;
//   - a pod of which nobody can see why it waits. The scheduler writes the reason once after an attempt, and does not repeat a
//     write that failed. A scheduler that has just stopped leading may write an error over the reason;
//   - a nominated pod: the scheduler drops what wakes it while others are evicted for it, and no event says what those free
//     besides cards.
//
// Pods of the last two kinds are woken each time after twice as long: where no status can be written, that concerns all pods that
// wait, and new pods would queue behind their attempts.
func (p *Pods) Rest(scheduler Scheduler) (woken, resting []*v1.Pod) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for _, one := range p.pods {
		one.rounds++
		switch {
		case one.isAtRest && one.rounds%maxRestRounds == 0:
			woken = append(woken, one.pod)
		case one.refusedBy == nil || one.rounds%(explainRounds<<one.doublings) != 0:
		case !scheduler.IsExplained(one.pod) || scheduler.NominatedNode(one.pod) != "":
			one.doublings = min(one.doublings+1, maxDoublings)
			woken = append(woken, one.pod)
		default:
			one.doublings = 0
			// Whoever is woken to evict others is reached through the scheduler.
			if one.isForCardsAlone && !one.isAtRest && !one.isWokenToEvict {
				one.isAtRest = true
				resting = append(resting, one.pod)
			}
		}
	}
	return woken, resting
}

// IsAtRest says whether the scheduler need not look at a pod: it was not tried since Rest said so.
func (p *Pods) IsAtRest(uid types.UID) bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	one := p.pods[uid]
	return one != nil && one.isAtRest
}
