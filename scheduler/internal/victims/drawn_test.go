package victims

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gpushare.io/scheduler/internal/cards"
	"gpushare.io/scheduler/internal/ledger"
	"gpushare.io/scheduler/internal/sharenode"
)

// drawNode returns a node with up to three cards, one in eight of them sick. A pod has units of one card, half of them
// by its kubelet as well. Some of the pods may go, and some are ending.
func drawNode(draw *rand.Rand) (*ledger.Node, []Pod) {
	share := &sharenode.Node{Name: "a", Resources: []cards.Resource{memory}, Preempts: true}
	for index := range 1 + draw.IntN(3) {
		share.Cards = append(share.Cards, sharenode.Card{
			UUID: fmt.Sprint("GPU-", index), Index: int64(index), Units: 16, IsHealthy: draw.IntN(8) > 0,
		})
	}
	var holders []*ledger.Holder
	var pods []Pod
	for number := range draw.IntN(7) {
		uid, units, card := fmt.Sprint("pod-", number), 1+draw.Int64N(8), &share.Cards[draw.IntN(len(share.Cards))]
		holders = append(holders, holds(uid, card.UUID, units))
		if draw.IntN(2) == 0 {
			card.Holders = append(card.Holders, sharenode.Holder{UID: uid, Units: units, Least: units})
			card.Allocated += units
		}
		if draw.IntN(6) > 0 {
			one := pod(uid, draw.Int32N(3), draw.Int64N(5))
			one.IsEnding = draw.IntN(6) == 0
			pods = append(pods, one)
		}
	}
	return ledger.NewNode(share, holders), pods
}

// cheapestOf tries all sets of pods, and returns how many are in the smallest one of those whose highest priority is
// lowest; false where none is enough. Those that are ending are gone in any case.
func cheapestOf(pods []Pod, enough func(uids []string) bool) (highest int32, number int, found bool) {
	for set := range 1 << len(pods) {
		var uids []string
		most, count := int32(-1), 0
		for place, one := range pods {
			switch {
			case one.IsEnding:
				uids = append(uids, one.UID)
			case set>>place&1 == 1:
				uids, most, count = append(uids, one.UID), max(most, one.Priority), count+1
			}
		}
		if enough(uids) && (!found || most < highest || most == highest && count < number) {
			highest, number, found = most, count, true
		}
	}
	return highest, number, found
}

func TestNoOtherVictimsAreCheaper(t *testing.T) {
	evicted := 0
	for seed := range uint64(2000) {
		draw := rand.New(rand.NewPCG(seed, 0))
		node, pods := drawNode(draw)
		request := asks(fmt.Sprint(1 + draw.Int64N(16)))
		fits := func(uids []string) bool {
			after := node.Clone()
			after.TakeAway(uids...)
			return after.Fits(request)
		}
		chosen, found := Find(node, request, pods, noBudgets)
		highest, number, isPossible := cheapestOf(pods, fits)
		if found != isPossible {
			t.Fatalf("seed %d: found %t, possible %t", seed, found, isPossible)
		}
		if !found {
			continue
		}
		most, count := int32(-1), 0
		for _, one := range pods {
			if slices.Contains(chosen, one.UID) && !one.IsEnding {
				most, count = max(most, one.Priority), count+1
			}
		}
		if !fits(chosen) || most != highest || count != number {
			t.Errorf("seed %d: %v, fits %t; %d of priority %d would be enough", seed, chosen, fits(chosen), number, highest)
		}
		evicted += count
	}
	if evicted == 0 {
		t.Error("nobody had to go")
	}
}
