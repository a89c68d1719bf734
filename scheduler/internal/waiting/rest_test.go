package waiting

import (
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// unexplained begins some rounds, and returns the names of those that are woken.
func (w *world) unexplained(rounds int, isExplained func(*v1.Pod) bool) []string {
	w.isExplained = isExplained
	woken, _ := w.rounds(rounds)
	return woken
}

// rounds begins some rounds, and returns the names of those that are woken, and of those that are at rest from then on.
func (w *world) rounds(number int) (woken, resting []string) {
	for range number {
		w.pods.Open()
		up, down := w.pods.Rest(w)
		for _, pod := range up {
			woken = append(woken, pod.Name)
		}
		for _, pod := range down {
			resting = append(resting, pod.Name)
		}
	}
	slices.Sort(resting)
	return woken, resting
}

// IsExplained implements Scheduler.
func (w *world) IsExplained(pod *v1.Pod) bool { return w.isExplained == nil || w.isExplained(pod) }

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
	for name, try := range map[string]func(*world){
		"a node refuses it": func(w *world) { w.try(pod("a", "16", 10)) },
		"no node does":      func(w *world) { w.tryForNothing(pod("a", "16", 10)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newRefused()
			never := func(*v1.Pod) bool { return false }
			var after []int
			for range maxDoublings + 2 {
				try(w)
				rounds := 1
				for len(w.unexplained(1, never)) == 0 && rounds < 1000 {
					rounds++
				}
				after = append(after, rounds)
			}
			if want := []int{10, 20, 40, 80, 160, 320, 320}; !slices.Equal(after, want) {
				t.Errorf("woken after %v rounds, not %v", after, want)
			}
			w.unexplained(1000, func(*v1.Pod) bool { return true })
			try(w)
			expect(t, "its reason has been seen meanwhile", w.unexplained(explainRounds, never), "a")
		})
	}
}

func TestAPodWhoseAttemptIsUnderWayNeedsNoReasonYet(t *testing.T) {
	w := newWorld()
	w.begin(pod("a", "16", 10))
	expect(t, "it is being tried", w.unexplained(2*explainRounds, func(*v1.Pod) bool { return false }))
}

func newRefusedAlone(names ...string) *world {
	w := newWorld()
	w.report(0)
	for _, name := range names {
		w.try(pod(name, "16", 10))
		w.pods.ForCardsAlone(types.UID(name))
	}
	return w
}

func TestAPodThatWeAloneRefusedIsAtRestOnceItsReasonIsSeen(t *testing.T) {
	w := newRefusedAlone("a", "b")
	w.try(pod("c", "16", 10)) // others refuse it as well
	w.isExplained = func(pod *v1.Pod) bool { return pod.Name != "b" }
	woken, resting := w.rounds(explainRounds)
	expect(t, "its reason is not seen", woken, "b")
	expect(t, "its reason is seen", resting, "a")
}

// A scheduler that has stopped leading may write its last error late.
func TestAPodWhoseReasonIsOverwrittenAfterItWasSeenIsWoken(t *testing.T) {
	w := newRefusedAlone("a")
	w.try(pod("b", "16", 10)) // others refuse it as well
	isShown := true
	w.isExplained = func(*v1.Pod) bool { return isShown }
	woken, resting := w.rounds(2 * explainRounds)
	expect(t, "their reasons are seen", woken)
	expect(t, "we alone refuse it", resting, "a")
	isShown = false
	woken, _ = w.rounds(explainRounds - 1)
	expect(t, "it is looked at again every ten rounds", woken)
	woken, _ = w.rounds(1)
	slices.Sort(woken)
	expect(t, "their reasons are gone", woken, "a", "b")
}

func TestAPodForWhichOthersAreEvictedIsNotAtRestAndIsTriedEverMoreRarely(t *testing.T) {
	w := newRefusedAlone("a")
	w.nominated["a"] = "gpu-1"
	for _, rounds := range []int{explainRounds, 2 * explainRounds, 4 * explainRounds} {
		woken, resting := w.rounds(rounds - 1)
		expect(t, "those may end soon", append(woken, resting...))
		woken, resting = w.rounds(1)
		expect(t, "it is not tried for long", woken, "a")
		expect(t, "it is nominated", resting)
		w.try(pod("a", "16", 10))
		w.pods.ForCardsAlone("a")
	}
}

func TestAPodAtRestIsTriedEveryFiveMinutes(t *testing.T) {
	w := newRefusedAlone("a")
	woken, _ := w.rounds(maxRestRounds - 1)
	expect(t, "it is at rest", woken)
	woken, _ = w.rounds(1)
	expect(t, "it was at rest for five minutes", woken, "a")
	woken, _ = w.rounds(maxRestRounds - 1)
	expect(t, "it is not tried yet", woken)
	woken, _ = w.rounds(1)
	expect(t, "it is not tried for long", woken, "a")
	w.try(pod("a", "16", 10))
	w.pods.ForCardsAlone("a")
	_, resting := w.rounds(explainRounds)
	expect(t, "it was refused again", resting, "a")
}

func TestOneAttemptSaysNothingOfWhoRefusesThePodInTheNext(t *testing.T) {
	w := newRefusedAlone("a")
	w.rounds(explainRounds)
	w.try(pod("a", "16", 10))
	_, resting := w.rounds(2 * explainRounds)
	expect(t, "others refuse it now", resting)
}
