package ledger

import (
	"fmt"
	"testing"
	"time"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/proportion"
)

// Anybody can write what a replaced system writes, and on a node in another dialect it never counts.
func TestPodsOfAReplacedSystemThatDoNotCountCostOthersNothing(t *testing.T) {
	nothing := func() cards.Request { return cards.Request{} }
	err := proportion.Check(60_000, func(number int) func() {
		book, share := New(), shareNode(t, emptyCard)
		book.SetShareNode(share)
		return func() {
			for place := range number {
				uid := fmt.Sprint(place)
				pod, _ := ReadPod(uid, "n", map[string]string{"volcano.sh/gpu-index": "0"}, nothing)
				book.SetPod(pod)
			}
			if got := free(book.Node("n", nil)); got != 16 {
				t.Errorf("%d units are free", got)
			}
			for place := range number {
				book.PodGone(fmt.Sprint(place), time.Now())
			}
			if len(book.legacy.nodes)+len(book.legacy.byNode) > 0 {
				t.Error("they are still known")
			}
		}
	})
	if err != nil {
		t.Error(err)
	}
}
