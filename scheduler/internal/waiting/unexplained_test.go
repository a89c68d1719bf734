package waiting

import (
	"slices"
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

func TestAPodWhoseReasonNobodySeesIsWokenAfterEachRefusal(t *testing.T) {
	w := newRefused("a", "b")
	isExplained := func(pod *v1.Pod) bool { return pod.Name == "b" }
	expect(t, "the reason may be under way", w.unexplained(explainRounds-1, isExplained))
	expect(t, "the write has failed", w.unexplained(1, isExplained), "a")
	expect(t, "a is not tried yet", w.unexplained(explainRounds-1, isExplained))
	w.try(pod("a", "16", 10))
	expect(t, "the reason may be under way again", w.unexplained(2*explainRounds-1, isExplained))
	expect(t, "the write has failed again", w.unexplained(1, isExplained), "a")
}

func TestAPodWhoseReasonIsNeverSeenIsWokenEverMoreRarely(t *testing.T) {
	w := newRefused("a")
	never := func(*v1.Pod) bool { return false }
	var after []int
	for range maxDoublings + 2 {
		rounds := 1
		for len(w.unexplained(1, never)) == 0 && rounds < 1000 {
			rounds++
		}
		after = append(after, rounds)
		w.try(pod("a", "16", 10))
	}
	if want := []int{10, 20, 40, 80, 160, 320, 320}; !slices.Equal(after, want) {
		t.Errorf("woken after %v rounds, not %v", after, want)
	}
	w.unexplained(1000, func(*v1.Pod) bool { return true })
	w.try(pod("a", "16", 10))
	expect(t, "its reason has been seen meanwhile", w.unexplained(explainRounds, never), "a")
}

func TestAPodWhoseAttemptIsUnderWayNeedsNoReasonYet(t *testing.T) {
	w := newWorld()
	w.begin(pod("a", "16", 10))
	expect(t, "it is being tried", w.unexplained(2*explainRounds, func(*v1.Pod) bool { return false }))
}
