package waiting

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

// unexplained begins some rounds, and returns the names of those that are woken.
func (w *world) unexplained(rounds int, isExplained func(*v1.Pod) bool) []string {
	var names []string
	for range rounds {
		for _, pod := range w.pods.Unexplained(isExplained) {
			names = append(names, pod.Name)
		}
	}
	return names
}

func TestAPodWhoseReasonNobodySeesIsWokenOnceAfterEachRefusal(t *testing.T) {
	w := newRefused("a", "b")
	isExplained := func(pod *v1.Pod) bool { return pod.Name == "b" }
	expect(t, "the reason may be under way", w.unexplained(explainRounds-1, isExplained))
	expect(t, "the write has failed", w.unexplained(1, isExplained), "a")
	expect(t, "a is not tried yet", w.unexplained(3*explainRounds, isExplained))
	w.try(pod("a", "16", 10))
	expect(t, "the reason may be under way again", w.unexplained(explainRounds-1, isExplained))
	expect(t, "the write has failed again", w.unexplained(1, isExplained), "a")
}

func TestAPodWhoseAttemptIsUnderWayNeedsNoReasonYet(t *testing.T) {
	w := newWorld()
	w.begin(pod("a", "16", 10))
	expect(t, "it is being tried", w.unexplained(2*explainRounds, func(*v1.Pod) bool { return false }))
}
