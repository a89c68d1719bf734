package ledger

import (
	"fmt"
	"testing"
	"time"

	"gpushare.io/scheduler/internal/cards"
)

// Anybody can write what a replaced system writes, and on a node in another dialect it never counts.
func TestPodsOfAReplacedSystemThatDoNotCountCostOthersNothing(t *testing.T) {
	const number = 60_000
	book, share := New(), shareNode(t, emptyCard)
	book.SetShareNode(share)
	nothing := func() cards.Request { return cards.Request{} }
	began := time.Now()
	for place := range number {
		uid := fmt.Sprint(place)
		pod, _ := ReadPod(uid, "n", map[string]string{"volcano.sh/gpu-index": "0"}, nothing)
		book.SetPod(pod)
	}
	if got := free(book.Node("n", nil)); got != 16 {
		t.Errorf("%d units are free", got)
	}
	for place := range number {
		book.PodGone(fmt.Sprint(place), began)
	}
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("took %s", took)
	}
	if len(book.legacy.nodes)+len(book.legacy.byNode) > 0 {
		t.Error("they are still known")
	}
}
